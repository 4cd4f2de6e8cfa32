"""The results of `time()`, `track_inprogress()` and `count_exceptions()`: context managers that are also decorators."""

from __future__ import annotations

import functools
import time
from types import TracebackType
from typing import Any, Callable, Optional, Tuple, Type, TypeVar, Union

_F = TypeVar("_F", bound=Callable[..., Any])
ExceptionTypes = Union[Type[BaseException], Tuple[Type[BaseException], ...]]


class _ContextDecorator:
    """Makes a context manager a decorator. Each call gets its own, so that calls may overlap and nest."""

    def __call__(self, function: _F) -> _F:
        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            with self._for_call():
                return function(*args, **kwargs)

        return decorated  # type: ignore[return-value]

    def _for_call(self) -> Any:
        return self


class Timer(_ContextDecorator):
    """Calls a metric's method with the duration of a block or a call, in seconds of the monotonic clock.

    So also if an exception leaves it. In `with`, each thread needs its own object. A decorated function may be called by any thread.
    """

    def __init__(self, metric: Any, method: str) -> None:
        self._metric = metric
        self._method = method
        self._start = 0.0

    def _for_call(self) -> Timer:
        return Timer(self._metric, self._method)

    def labels(self, *values: object, **named: object) -> None:
        """Chooses the series inside the block, for labels that are known only at its end. ValueError: as the metric's `labels`."""
        self._metric = self._metric.labels(*values, **named)

    def __enter__(self) -> Timer:
        self._start = time.perf_counter()
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        getattr(self._metric, self._method)(time.perf_counter() - self._start)


class InprogressTracker(_ContextDecorator):
    """Adds one to a gauge during a block or a call."""

    def __init__(self, gauge: Any) -> None:
        self._gauge = gauge

    def __enter__(self) -> None:
        self._gauge.inc()

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        self._gauge.dec()


class ExceptionCounter(_ContextDecorator):
    """Counts the exceptions of given types that leave a block or a call, and does not suppress them."""

    def __init__(self, counter: Any, exception: ExceptionTypes) -> None:
        self._counter = counter
        self._exception = exception

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        if isinstance(error, self._exception):
            self._counter.inc()
