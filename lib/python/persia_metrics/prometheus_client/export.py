"""How what is not a native series reaches the agent: custom collectors, and other registries."""

from __future__ import annotations

import logging
import threading
from typing import Any, Callable, Dict, Iterator, Set

from .. import _native
from ..bridge import RegistryCopy
from .registry import REGISTRY

_log = logging.getLogger("persia_metrics")
_lock = threading.Lock()
_copies: Dict[Any, RegistryCopy] = {}
_told: Set[str] = set()


class _CustomCollectors:
    """The default registry's collectors that are not native. One that raises costs only itself."""

    def __init__(self) -> None:
        self.left_out: Set[Any] = set()

    def collect(self) -> Iterator[Any]:
        for collector in REGISTRY.collectors():
            if not getattr(collector, "_exported", False) and collector not in self.left_out:
                yield from _tried(collector, lambda: list(collector.collect())) or ()


def _tried(collector: Any, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        if repr(collector) not in _told:
            _told.add(repr(collector))
            _log.warning("%r is not exported; the next second tries again: %s: %s", collector, type(error).__name__, error)
        return None


_custom = _CustomCollectors()


def watch(*left_out: Any) -> None:
    """Copies the custom collectors that are registered from now on, and never these."""
    _custom.left_out.update(left_out)
    REGISTRY._on_custom = copy_custom


def copy_custom() -> None:
    """Copies the default registry's custom collectors each second from now on."""
    _copy(_custom)


def _copy(registry: Any) -> RegistryCopy:
    with _lock:
        if registry not in _copies:
            _copies[registry] = RegistryCopy(registry)
        return _copies[registry]


def agent_exports(call: str, registry: Any) -> bool:
    """Whether the agent exports this process's metrics. If so, says once that it replaces the call, and copies the registry."""
    if not _native.exporting():
        return False
    if registry is not None and registry is not REGISTRY:
        _copy(registry).copy_now()
    if call not in _told:
        _told.add(call)
        _log.warning("prometheus_client.%s is left to the job's agent, which exports this process's metrics", call)
    return True
