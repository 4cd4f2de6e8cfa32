"""Exports the metrics and events of torch's elastic launcher and workers, without a change of the program.

persia_metrics.pth calls `register` when Python starts, if PERSIA_METRICS_TORCHELASTIC is 1. This module is outside the package, so
that a program that does not import torch's modules does not load the package either.
"""

import sys

MYPY = False
if MYPY:  # for mypy only: this import takes longer than the rest of the start-up
    from typing import Any

# The functions of persia_metrics.torchelastic.install that are called after the import of each of torch's modules.
_CALLS = {
    "torch.distributed.elastic.metrics": "export_metrics",
    "torch.distributed.elastic.events.handlers": "export_events",
    "torch.distributed.launcher.api": "name_launcher",
}


class _Finder:
    """Finds torch's modules as Python does, and calls us after their first import."""

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        if name not in _CALLS:
            return None
        from importlib.machinery import PathFinder  # only here, to keep the start-up short

        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: "Any") -> None:
                execute(module)
                _export(name, module)

            spec.loader.exec_module = exec_module  # type: ignore
        return spec


def register() -> None:
    """Exports from the modules that are imported, and from the others after their import."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, _Finder())
    for name in _CALLS:
        if name in sys.modules:
            _export(name, sys.modules[name])


def _export(name: str, module: "Any") -> None:
    try:
        __import__("persia_metrics.torchelastic.install")
        getattr(sys.modules["persia_metrics.torchelastic.install"], _CALLS[name])(module)
    except Exception as error:  # the program's import succeeds
        print(f"persia_metrics: {name} is not exported: {type(error).__name__}: {error}", file=sys.stderr)
