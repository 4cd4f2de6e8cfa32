"""The functions and classes of persia_metrics.torchelastic.metrics, whose docstring describes them."""

from __future__ import annotations

import abc
import functools
import logging
import time
import warnings
from types import TracebackType
from typing import Any, Callable, Dict, NamedTuple, Optional, Set, Tuple, Type, TypeVar, Union, overload

from ... import _native
from ...timing import ContextDecorator, decorate, lasts_longer

__all__ = [
    "ConsoleMetricHandler",
    "ConsoleMetricsHandler",
    "ExportingMetricHandler",
    "MetricData",
    "MetricHandler",
    "MetricStream",
    "MetricsConfig",
    "NullMetricHandler",
    "NullMetricsHandler",
    "configure",
    "getStream",
    "get_elapsed_time_ms",
    "prof",
    "profile",
    "publish_metric",
    "put_metric",
]

_MAX_STREAMS = 10_000  # more than fit into a segment of the default size
_MAX_WARNINGS = 1000

_F = TypeVar("_F", bound=Callable[..., Any])
_log = logging.getLogger("persia_metrics")


class MetricData(NamedTuple):
    """A value that was added to a stream."""

    timestamp: float
    """Unix time in seconds."""
    group_name: str
    """The stream's group."""
    name: str
    """The metric's name in the group."""
    value: float
    """A number, in the unit that the name implies."""


class MetricsConfig:
    """The parameters of `initialize_metrics`, which reads none of them."""

    __slots__ = ["params"]

    params: Dict[str, str]
    """Empty if none are given."""

    def __init__(self, params: Optional[Dict[str, str]] = None) -> None:
        self.params = {} if params is None else params


class MetricHandler(abc.ABC):
    """Receives values. `emit` runs in the caller's thread: its exceptions and its duration affect that caller only."""

    @abc.abstractmethod
    def emit(self, metric_data: MetricData) -> None:
        """Handles one value."""


class ConsoleMetricHandler(MetricHandler):
    """Prints each value on stdout, as `[timestamp][group]: name=value`."""

    def emit(self, metric_data: MetricData) -> None:
        timestamp, group, name, value = metric_data
        print(f"[{timestamp}][{group}]: {name}={value}")


class NullMetricHandler(MetricHandler):
    """Ignores values."""

    def emit(self, metric_data: MetricData) -> None:
        pass


class ExportingMetricHandler(MetricHandler):
    """Puts values into streams of the segment. The agent's rules decide how it exports them: the last value, a sum, ...

    A value that is not a number is dropped, with one warning for each metric and at most 1,000 warnings: the default handler must not
    stop a training step.
    """

    def __init__(self) -> None:
        self._adders: Dict[Tuple[str, str], Callable[[Any], None]] = {}
        self._warned: Set[str] = set()

    def emit(self, metric_data: MetricData) -> None:
        self.add(metric_data[1], metric_data[2], metric_data[3])

    def add(self, group: str, name: str, value: float) -> None:
        """As `emit`, but without a timestamp, which streams do not keep."""
        try:
            (self._adders.get((group, name)) or self._adder(group, name))(value)
        except Exception as error:
            metric = f"{name!r} in group {group!r}"
            if metric not in self._warned and len(self._warned) < _MAX_WARNINGS:
                self._warned.add(metric)
                _log.warning("dropped a value of %s; further ones are dropped without a warning: %s", metric, error)

    def _adder(self, group: str, name: str) -> Callable[[Any], None]:
        stream = _native.Stream("" if group is None else str(group), str(name), "", "", ())
        if len(self._adders) >= _MAX_STREAMS:
            self._adders.clear()  # a program with an unbounded set of names does not repeat them
        return self._adders.setdefault((group, name), stream.add)


class MetricStream:
    """A group, bound to its handler. Its attributes are `group_name` and `handler`."""

    def __init__(self, group_name: str, handler: MetricHandler) -> None:
        self.group_name = group_name
        self.handler = handler

    def add_value(self, metric_name: str, metric_value: float) -> None:
        """Passes a value of the metric (group, `metric_name`) to the handler, with the current time. Raises what the handler raises."""
        handler = self.handler
        if type(handler) is ExportingMetricHandler:
            handler.add(self.group_name, metric_name, metric_value)
        else:
            handler.emit(MetricData(time.time(), self.group_name, metric_name, metric_value))


ConsoleMetricsHandler = ConsoleMetricHandler  # torchelastic's documents have both spellings
NullMetricsHandler = NullMetricHandler

_exporting_handler = ExportingMetricHandler()
_null_handler = NullMetricHandler()
_default_handler: Optional[MetricHandler] = None  # None: the exporting one if metrics are enabled, else the null one
_handlers: Dict[str, MetricHandler] = {}


def configure(handler: MetricHandler, group: Optional[str] = None) -> None:
    """Sets the handler of `group`, or of all groups without their own. Existing streams keep theirs."""
    global _default_handler
    if group is None:
        _default_handler = handler
    else:
        _handlers[group] = handler


def getStream(group: str) -> MetricStream:  # noqa: N802 - torchelastic's name
    """Returns a stream of a group, bound to the handler that the group has now."""
    handler = _handlers.get(group, _default_handler)
    if handler is None:
        handler = _exporting_handler if _native.exporting() else _null_handler
    return MetricStream(group, handler)


def put_metric(metric_name: str, metric_value: float, metric_group: str = "torchelastic") -> None:
    """Adds one value to the metric (`metric_group`, `metric_name`). Raises what the group's handler raises."""
    getStream(metric_group).add_value(metric_name, metric_value)


def publish_metric(metric_group: str, metric_name: str, metric_value: float) -> None:
    """Deprecated: `put_metric` with its arguments in another order."""
    warnings.warn("publish_metric is deprecated: use put_metric(name, value, group)", stacklevel=2)
    getStream(metric_group).add_value(metric_name, metric_value)


def get_elapsed_time_ms(start_time_in_seconds: float) -> int:
    """Whole milliseconds since `start_time_in_seconds`, a `time.time()`."""
    return int((time.time() - start_time_in_seconds) * 1000)


class _Profile(ContextDecorator):
    """The calls of a coroutine function or a generator, which last longer than the call that makes them."""

    def __init__(self, name: str, put: Callable[[str, float], None]) -> None:
        self._name = name
        self._put = put

    def __enter__(self) -> None:
        self._start = time.time()

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        try:
            if kind is None or issubclass(kind, (Exception, GeneratorExit)):  # a generator that its caller closes has not failed
                self._put(f"{self._name}.{'failure' if isinstance(error, Exception) else 'success'}", 1)
        finally:
            self._put(f"{self._name}.duration.ms", get_elapsed_time_ms(self._start))

    def _pause(self) -> None:
        self._paused = time.time()

    def _resume(self) -> None:
        self._start += time.time() - self._paused


def _profiled(function: _F, name: str, put: Callable[[str, float], None]) -> _F:
    if lasts_longer(function):
        return decorate(function, lambda: _Profile(name, put))

    @functools.wraps(function)
    def profiled(*args: Any, **kwargs: Any) -> Any:
        start = time.time()
        try:
            result = function(*args, **kwargs)
            put(f"{name}.success", 1)
        except Exception:
            put(f"{name}.failure", 1)
            raise
        finally:
            put(f"{name}.duration.ms", get_elapsed_time_ms(start))
        return result

    return profiled  # type: ignore[return-value]


def _get_metric_name(fn: Callable[..., Any]) -> str:
    """`Class.method` or `module.function`, without the module's packages."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    named: Any = fn if hasattr(fn, "__qualname__") else type(fn)
    name: str = named.__qualname__
    module: str = named.__module__
    if "." in name or not module:
        return name
    return f"{module.rpartition('.')[2]}.{name}"


@overload
def prof(fn: _F, group: str = "torchelastic") -> _F: ...
@overload
def prof(fn: None = None, group: str = "torchelastic") -> Callable[[_F], _F]: ...
def prof(fn: Optional[_F] = None, group: str = "torchelastic") -> Union[_F, Callable[[_F], _F]]:
    """Decorates a function so that each call adds to `<name>.success` or `<name>.failure`, and `<name>.duration.ms`.

    With or without arguments: `@prof`, `@prof(group="agent")`. The duration is in whole milliseconds. The name is `Class.method` or
    `module.function`. A partial has the name of its function, a callable object that of its class. A coroutine function is measured
    until it returns, a generator until it ends, without the time in which its caller uses the values; torch's times their making.
    """

    def wrap(function: _F) -> _F:
        return _profiled(function, _get_metric_name(function), lambda name, value: put_metric(name, value, group))

    return wrap if fn is None else wrap(fn)


def profile(group: Optional[str] = None) -> Callable[[_F], _F]:
    """Deprecated: as `prof(group=...)`, but with the function's bare name in the names of the metrics."""
    warnings.warn("profile is deprecated: use prof", DeprecationWarning, stacklevel=2)

    def wrap(function: _F) -> _F:
        def put(name: str, value: float) -> None:
            getStream(group).add_value(name, value)  # type: ignore[arg-type]

        return _profiled(function, getattr(function, "__name__", None) or _get_metric_name(function), put)

    return wrap
