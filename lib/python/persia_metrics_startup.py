"""Instruments libraries without a change of the program: torch's elastic launcher, the phases of training, prometheus_client's metrics.

persia_metrics.pth calls `start` when Python starts, if PERSIA_METRICS_TORCHELASTIC is 1 or one of the variables of CHOICES is set. This
module is outside the package, so that a program that does not import these libraries does not load the package either.
"""

import os
import sys

MYPY = False
if MYPY:  # for mypy only: this import takes longer than the rest of the start-up
    from typing import Any, Dict, List, Set, Tuple

# The modules and functions of ours that are called after the import of each of these modules.
_ELASTIC = "persia_metrics.torchelastic.install"
ELASTIC = {
    "torch.distributed.elastic.metrics": (_ELASTIC, "export_metrics"),
    "torch.distributed.elastic.events.handlers": (_ELASTIC, "export_events"),
    "torch.distributed.launcher.api": (_ELASTIC, "name_launcher"),
}
_PATCHES = "persia_metrics.torch.patches"
TORCH = {
    "torch.autograd": (_PATCHES, "mark_backward"),
    "torch.serialization": (_PATCHES, "mark_saving"),
    "torch.utils.data.dataloader": (_PATCHES, "mark_loading"),
    "torch.utils.data._utils.worker": (_PATCHES, "leave_out_workers"),
    "torch.optim.optimizer": (_PATCHES, "mark_optimizers"),
    "torch.distributed.distributed_c10d": (_PATCHES, "mark_collectives"),
    "torch.nn.parallel.distributed": (_PATCHES, "mark_reduction"),
    "torch": (_PATCHES, "mark_modules"),
}
PROMETHEUS_CLIENT = {"prometheus_client": ("persia_metrics.prometheus_hook", "after_import")}
# What exec --instrument names, by its variable.
CHOICES = {"PERSIA_METRICS_TORCH": ("torch", TORCH), "PERSIA_METRICS_PROMETHEUS_CLIENT": ("prometheus_client", PROMETHEUS_CLIENT)}
# Of each program that imports the package.
RANK = {"torch.distributed.distributed_c10d": ("persia_metrics.torch.ranks", "take_rank")}


class _Finder:
    """Finds modules as Python does, and calls us after their first import."""

    def __init__(self) -> None:
        self.calls = {}  # type: Dict[str, List[Tuple[str, str]]]
        self.searched = set()  # type: Set[str]

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        if name not in self.calls:
            return None
        from importlib.machinery import PathFinder  # only here, to keep the start-up short

        spec = PathFinder.find_spec(name, path, target) or self._found_by_others(name, path, target)
        if spec is not None and spec.loader is not None and not isinstance(spec.loader, type):
            execute = spec.loader.exec_module

            def exec_module(module: "Any") -> None:
                execute(module)
                for call in self.calls[name]:
                    _call(name, module, *call)

            spec.loader.exec_module = exec_module  # type: ignore
        return spec

    def _found_by_others(self, name: str, path: "Any", target: "Any") -> "Any":
        """An editable installation and a frozen program have finders of their own."""
        if name in self.searched:  # by another finder that asks us, too
            return None
        self.searched.add(name)
        try:
            others = (finder for finder in sys.meta_path if finder is not self)
            found = (finder.find_spec(name, path, target) for finder in others if hasattr(finder, "find_spec"))
            return next((spec for spec in found if spec is not None), None)
        finally:
            self.searched.discard(name)


_finder = _Finder()


def start() -> None:
    """Instruments what the environment variables enable."""
    if os.environ.get("PERSIA_METRICS_TORCHELASTIC") == "1":
        register(ELASTIC)
    for variable, (library, calls) in CHOICES.items():
        value = os.environ.get(variable, "")
        if value == "1":
            register(calls)
        elif value not in ("", "0"):
            print(f'persia_metrics: {variable}="{value}": expected 0 or 1; {library} is not instrumented', file=sys.stderr)


def register(calls: "Dict[str, Tuple[str, str]]") -> None:
    """Instruments the modules that are imported, and the others after their import."""
    added = [name for name in calls if calls[name] not in _finder.calls.get(name, [])]
    for name in added:
        _finder.calls.setdefault(name, []).append(calls[name])
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    for name in added:
        if name in sys.modules:
            _call(name, sys.modules[name], *calls[name])


def _call(name: str, module: "Any", ours: str, function: str) -> None:
    try:
        __import__(ours)
        getattr(sys.modules[ours], function)(module)
    except Exception as error:  # the program's import succeeds
        print(f"persia_metrics: {name} is not exported: {type(error).__name__}: {error}", file=sys.stderr)
