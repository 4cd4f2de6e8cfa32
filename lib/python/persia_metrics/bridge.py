"""What prometheus_client's custom collectors collect reaches the agent, too.

    from persia_metrics.bridge import RegistryCopy

    RegistryCopy()  # of prometheus_client.REGISTRY

The metrics of a registry need no copy: their values are in the segment (persia_metrics.prometheus_client), and RegistryCopy sees to that.
Its collectors, which make their samples when they are asked, are asked by a thread: at once, then each second, and a last time when the
process exits. Names, labels and help stay as they are. New collectors and series are copied, too.

- Counters: totals that are counted elsewhere, such as the bytes of a card that each process reads. The total is exported as it is, once:
  as a gauge, the highest value of the living processes. Histograms and summaries are left out, and one line says so.
- With `counted_by_others=False`, counters, histograms and the `_count` and `_sum` of summaries are counted by this process: the increase
  since the last copy is added to those of other processes. One that fell was reset, and its whole value is added. All series of a
  histogram must have the same bounds, at most 500.
- Gauges, unknown metrics, infos, states, and the quantiles of summaries: the value is copied. One that disappears is no longer exported.
- `_created` samples, exemplars and timestamps are not copied, nor what prometheus_client's own collectors tell of the process.

One thread copies all registries. A collector that raises affects only itself; one that blocks holds up all copies. When a registry of
prometheus_client is dropped, so is its copy. A copy takes about 10 µs for each sample, and holds Python's global lock for that time: with 1,000 samples and a
copy each second, 1 % of a core. At exit, the last copies get two seconds.

A fork waits for a copy in progress, at most a second. A forked child copies nothing, unless it makes its own RegistryCopy. If a process
ends by `os._exit`, its counts since the last copy are lost, except in a child of multiprocessing.

Thread safety: any method, from any thread.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import logging
import os
import threading
import time
import weakref
from types import TracebackType
from typing import Any, Callable, Iterator, List, Optional, Set, Type

from . import _at_exit, _native
from .series_copier import SeriesCopier

__all__ = ["RegistryCopy"]

_log = logging.getLogger("persia_metrics")
_EXIT_TIMEOUT = 2.0
_FORK_TIMEOUT = 1.0

_copies: List[RegistryCopy] = []
_forking = threading.local()  # whether the forking thread holds the lock
_told: Set[str] = set()


class _Copying:
    """The thread that copies, of this process."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # held during a copy; a collector may fork
        self.changed = threading.Event()  # there is a new copy, or the process ends
        self.ends = False
        self.thread: Optional[threading.Thread] = None

    def start(self) -> None:
        if self.thread is None:
            self.thread = threading.Thread(target=self._run, name="persia-copy", daemon=True)
            self.thread.start()
        self.changed.set()

    def _run(self) -> None:
        last = False
        while not last:
            self.changed.clear()
            last = self.ends
            for copy in list(_copies):
                if last or copy._due <= time.monotonic():
                    copy.copy_now()
            due = min((copy._due for copy in list(_copies)), default=None)
            if not last:
                self.changed.wait(None if due is None else max(0.0, due - time.monotonic()))

    def end(self) -> None:
        self.ends = True
        self.changed.set()
        if self.thread is not None:
            self.thread.join(_EXIT_TIMEOUT)


_copying = _Copying()


class RegistryCopy:
    """Copies the custom collectors of a registry, by default `prometheus_client.REGISTRY`, until `close()`, the exit, or its end.

    `registry` is prometheus_client's, or any object with `collect()`; `interval` is in seconds. `counted_by_others`: its counters are
    totals that are kept elsewhere. Two copies of one registry are the same as one. While metrics are not exported, it does not copy; the
    first copy after `init` has all values. ImportError: there is no prometheus_client.
    """

    def __init__(self, registry: Any = None, interval: float = 1.0, counted_by_others: bool = True) -> None:
        if registry is None:
            registry = importlib.import_module("prometheus_client").REGISTRY
        self._registry: Callable[[], Any] = lambda: registry
        if hasattr(registry, "_collector_to_names"):
            self._registry = weakref.ref(registry)
            hook = importlib.import_module("persia_metrics.prometheus_hook")
            hook.install()
            hook.adopt(registry)
        self._interval = max(float(interval), 0.01)
        self._due = 0.0
        same: List[SeriesCopier] = [copy._copier for copy in list(_copies) if copy._registry() is registry]
        self._copier: SeriesCopier = same[0] if same else SeriesCopier(counted_by_others)
        _copies.append(self)
        _copying.start()

    def copy_now(self) -> None:
        """Copies the registry now, after any copy in progress. Raises nothing."""
        self._due = time.monotonic() + self._interval
        registry = self._registry()
        if registry is None:
            self._forget()
        if registry is None or self not in _copies or not _native.exporting():
            return
        with _copying.lock:
            try:
                self._copier.copy(_families(registry))
            except Exception as error:
                _tell(registry, error)

    def close(self) -> None:
        """Copies the registry a last time, and stops."""
        if _copying.lock.acquire(timeout=_EXIT_TIMEOUT):  # not held by a collector that blocks
            try:
                self.copy_now()
            finally:
                _copying.lock.release()
        self._forget()

    def _forget(self) -> None:
        with contextlib.suppress(ValueError):  # another thread was first
            _copies.remove(self)

    def __enter__(self) -> RegistryCopy:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        self.close()


def copy_by_default(registry: Any) -> None:
    """Makes a copy of the registry, if there is none."""
    if not any(copy._registry() is registry for copy in list(_copies)):
        RegistryCopy(registry)


def _tell(what: object, error: Exception) -> None:
    if repr(what) not in _told:
        _told.add(repr(what))
        _log.warning("%r was not copied; the next copy tries again: %s: %s", what, type(error).__name__, error)


def _families(registry: Any) -> Iterator[Any]:
    collectors: Any = getattr(registry, "_collector_to_names", None)
    if collectors is None:
        yield from registry.collect()
        return
    is_custom = importlib.import_module("persia_metrics.prometheus_hook").is_custom
    for collector in [each for each in list(collectors) if is_custom(each)]:
        try:
            yield from list(collector.collect())
        except Exception as error:
            _tell(collector, error)


def _copy_last() -> None:
    _copying.end()


def _before_fork() -> None:
    # Waits for a copy in progress: the child would inherit a collector's locks from it, and nothing would release them.
    _forking.holds = _copying.lock.acquire(timeout=_FORK_TIMEOUT)


def _in_parent() -> None:
    if _forking.holds:
        _copying.lock.release()


def _in_child() -> None:
    global _copying
    _copying = _Copying()
    _copies.clear()


atexit.register(_copy_last)
_at_exit.append(_copy_last)
os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
