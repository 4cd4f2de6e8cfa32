"""What `time()`, `track_inprogress()` and `count_exceptions()` give: context managers that are decorators as well."""

from __future__ import annotations

import functools
import time
from types import TracebackType
from typing import Any, Callable, Optional, Tuple, Type, TypeVar, Union

_F = TypeVar("_F", bound=Callable[..., Any])
ExceptionTypes = Union[Type[BaseException], Tuple[Type[BaseException], ...]]


class _Around:
    """Wraps a function in the context manager, a new one for each call, so that calls may overlap and nest."""

    def __call__(self, function: _F) -> _F:
        @functools.wraps(function)
        def around(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return function(*args, **kwargs)

        return around  # type: ignore[return-value]

    def _again(self) -> Any:
        return self


class Timer(_Around):
    """Calls a method of a metric with the time that a block or a call took, in seconds of the monotonic clock."""

    def __init__(self, metric: Any, method: str) -> None:
        self._metric = metric
        self._method = method
        self._start = 0.0

    def _again(self) -> Timer:
        return Timer(self._metric, self._method)

    def labels(self, *values: object, **named: object) -> None:
        """Chooses the series while the time is running: for labels that are known only at the end."""
        self._metric = self._metric.labels(*values, **named)

    def __enter__(self) -> Timer:
        self._start = time.perf_counter()
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        getattr(self._metric, self._method)(time.perf_counter() - self._start)


class InprogressTracker(_Around):
    """Adds one to a gauge while a block or a call is under way."""

    def __init__(self, gauge: Any) -> None:
        self._gauge = gauge

    def __enter__(self) -> None:
        self._gauge.inc()

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        self._gauge.dec()


class ExceptionCounter(_Around):
    """Counts the exceptions of some types that leave a block or a call, and lets them go on."""

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
