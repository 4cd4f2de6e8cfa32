"""The metrics that other libraries registered with the real prometheus_client reach the agent, too.

    from persia_metrics.bridge import RegistryCopy

    RegistryCopy()  # of prometheus_client.REGISTRY

A thread copies the registry at once, then each second, and a last time when the process exits. Names, labels and help stay as they are.
Values from before the first copy are included. New series are copied too.

- Counters, histograms, and the `_count` and `_sum` of summaries: the increase since the last copy is added. One that fell was reset, and
  its whole value is added.
- Gauges, unknown metrics, infos, states, and the quantiles of summaries: the value is copied. One that disappears is no longer exported.
- All series of a histogram must have the same bounds, at most 500. `_created` samples, exemplars and timestamps are not copied, nor are the
  `process_*` metrics of prometheus_client's own collector: the agent has `persia_process_*`.

A fork waits for a copy in progress, at most a second. A forked child exports only what it counts itself: a new thread first reads all
values, which are the parent's, and then copies what is added to them. If the first reading takes longer than a second, for example because
another thread of the parent held a lock, the child copies nothing, and one line says so. A child that a collector forks copies nothing. If a
process ends by `os._exit`, its counts since the last copy are lost, except in a child of multiprocessing. prometheus_client's own
multiprocess mode must be off.

A copy takes about 10 µs for each sample, and holds Python's global lock for that time: with 1,000 samples and a copy each second, 1 % of a
core. A registry that raises or blocks affects only its own copy. At exit, a last copy gets two seconds.

Thread safety: any method, from any thread.
"""

from __future__ import annotations

import atexit
import importlib
import logging
import os
import threading
import time
from types import TracebackType
from typing import Any, List, Optional, Type

from . import _at_exit, _native
from .series_copier import SeriesCopier

__all__ = ["RegistryCopy"]

_log = logging.getLogger("persia_metrics")
_EXIT_TIMEOUT = 2.0
_FORK_TIMEOUT = 1.0

_copies: List[RegistryCopy] = []
_forking = threading.local()  # the locks that the forking thread holds


class RegistryCopy:
    """Copies a registry, by default `prometheus_client.REGISTRY`, to this process's metrics, until `close()` or the exit.

    `registry` is any object with `collect()`; `interval` is in seconds. Make one object for each registry: a second one would add all
    values again. While metrics are not exported, it does not copy; the first copy after `init` has all values. ImportError: there is no
    prometheus_client.
    """

    def __init__(self, registry: Any = None, interval: float = 1.0) -> None:
        self._registry = importlib.import_module("prometheus_client").REGISTRY if registry is None else registry
        self._interval = max(float(interval), 0.01)
        self._copier = SeriesCopier()
        self._told = False
        self._closed = False
        self._readable = False
        self._copying_thread = 0
        self._start()
        _copies.append(self)

    def _start(self) -> None:
        self._lock = threading.RLock()  # a collector may fork
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="persia-copy", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        stop = self._stop
        last = False
        while not last:
            last = stop.is_set()
            self.copy_now()
            stop.wait(self._interval)

    def copy_now(self) -> None:
        """Copies the registry now, after any copy in progress. Raises nothing."""
        if not self._closed and _native.exporting():
            self._copy(True)

    def _copy(self, add: bool) -> None:
        try:
            with self._lock:
                self._copying_thread = threading.get_ident()
                try:
                    self._copier.copy(self._registry.collect(), add)
                finally:
                    self._copying_thread = 0
                self._readable = True
        except Exception as error:
            if not self._told:
                self._told = True
                _log.warning("%r was not copied; the next copy tries again: %s: %s", self._registry, type(error).__name__, error)

    def close(self) -> None:
        """Copies the registry a last time, and stops."""
        self._stop.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(_EXIT_TIMEOUT)
        if not self._thread.is_alive():
            self.copy_now()
        self._closed = True
        if self in _copies:
            _copies.remove(self)

    def __enter__(self) -> RegistryCopy:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        self.close()

    def _begin_last_copy(self) -> None:
        self._stop.set()

    def _end_last_copy(self, deadline: float) -> None:
        self._thread.join(max(0.0, deadline - time.monotonic()))

    def _in_child(self) -> None:
        """Remembers the values at the fork, and goes on with a new thread and lock."""
        # A child that a collector has forked would fork again while it reads the registry, without end.
        self._closed = self._closed or self._copying_thread == threading.get_ident()
        if self._closed:
            return
        self._lock = threading.RLock()
        self._readable = False
        reading = threading.Thread(target=self._copy, args=(False,), name="persia-copy", daemon=True)
        reading.start()
        reading.join(_FORK_TIMEOUT)
        if not self._readable:
            self._closed = True
            _log.warning("%r is not copied in the forked process %d: its values cannot be read", self._registry, os.getpid())
            return
        self._start()


def _copy_last() -> None:
    copies = list(_copies)
    for copy in copies:  # all begin before one that blocks is waited for
        copy._begin_last_copy()
    deadline = time.monotonic() + _EXIT_TIMEOUT
    for copy in copies:
        copy._end_last_copy(deadline)


def _before_fork() -> None:
    # Waits for copies in progress: the child would inherit the registry's locks from them, and nothing would release them.
    deadline = time.monotonic() + _FORK_TIMEOUT
    locks = [copy._lock for copy in list(_copies)]
    _forking.locks = [lock for lock in locks if lock.acquire(timeout=max(0.0, deadline - time.monotonic()))]


def _in_parent() -> None:
    for lock in _forking.locks:
        lock.release()


def _in_child() -> None:
    for copy in list(_copies):
        copy._in_child()


atexit.register(_copy_last)
_at_exit.append(_copy_last)
os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
