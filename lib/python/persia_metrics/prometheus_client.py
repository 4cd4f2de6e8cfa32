"""prometheus_client itself, with its values in the segment that the job's agent exports.

    import persia_metrics.prometheus_client as prometheus_client

It also has the function `install`, for a program that imports prometheus_client by its own name. Needs prometheus_client 0.16 or newer.
"""

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Optional

from .prometheus_hook import install

_PREFIX = __name__ + "."


class _Alias:
    """`persia_metrics.prometheus_client.core` is prometheus_client.core, not a second one with other metrics."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        return ModuleSpec(name, _Alias) if name.startswith(_PREFIX) else None  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module("prometheus_client." + spec.name[len(_PREFIX) :])
        spec.loader_state = module.__spec__
        return module

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        # The import has given it our spec.
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


install()
sys.meta_path.insert(0, _Alias)  # type: ignore[arg-type]
sys.modules["prometheus_client"].install = install  # type: ignore[attr-defined]
sys.modules[__name__] = sys.modules["prometheus_client"]
