"""torchelastic's metrics API: streams of values by group, and the handlers that they go to.

The functions, classes and signatures are those of `torchelastic.metrics.api`
(https://pytorch.org/docs/stable/elastic/metrics.html). One thing is another: where metrics are on, the handler that a group has
unless it is configured exports the values, and where they are off it is the null handler, as there.
"""

from __future__ import annotations

import abc
import functools
import logging
import time
import warnings
from typing import Any, Callable, Dict, NamedTuple, Optional, Set, Tuple, TypeVar, Union, overload

from ... import _native

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

_MOST_KEPT = 10_000  # streams; a segment of the usual size has no place for so many
_MOST_SAID = 1000  # metrics whose values are left out

_F = TypeVar("_F", bound=Callable[..., Any])
_log = logging.getLogger("persia_metrics")


class MetricData(NamedTuple):
    """A value that was added to a stream."""

    timestamp: float
    """When, in seconds of Unix time."""
    group_name: str
    name: str
    value: float


class MetricsConfig:
    """Parameters of a metrics set-up, as `initialize_metrics` takes them; none of them is read."""

    __slots__ = ["params"]

    def __init__(self, params: Optional[Dict[str, str]] = None) -> None:
        self.params = {} if params is None else params


class MetricHandler(abc.ABC):
    """Where values go. `emit` runs in the caller's thread: what it raises, or how long it takes, meets that caller alone."""

    @abc.abstractmethod
    def emit(self, metric_data: MetricData) -> None:
        """Takes one value."""


class ConsoleMetricHandler(MetricHandler):
    """Prints each value on stdout, as `[timestamp][group]: name=value`."""

    def emit(self, metric_data: MetricData) -> None:
        timestamp, group, name, value = metric_data
        print(f"[{timestamp}][{group}]: {name}={value}")


class NullMetricHandler(MetricHandler):
    """Takes values, and does nothing with them."""

    def emit(self, metric_data: MetricData) -> None:
        pass


class ExportingMetricHandler(MetricHandler):
    """Puts values into streams of the segment, from which the agent exports them as its rules say: the last value, a sum, ...

    A value that is no number is left out, and the log says so once for each metric, of a thousand metrics at most: this is the
    handler that a job has without asking for it, so it must not stop a training step.
    """

    def __init__(self) -> None:
        self._adders: Dict[Tuple[str, str], Callable[[Any], None]] = {}
        self._said: Set[str] = set()

    def emit(self, metric_data: MetricData) -> None:
        self.add(metric_data[1], metric_data[2], metric_data[3])

    def add(self, group: str, name: str, value: float) -> None:
        """As `emit`, without a time, which nobody would read."""
        try:
            (self._adders.get((group, name)) or self._adder(group, name))(value)
        except Exception as error:
            metric = f"{name!r} in group {group!r}"
            if metric not in self._said and len(self._said) < _MOST_SAID:
                self._said.add(metric)
                _log.warning("a value of %s is left out, as others of its kind will be: %s", metric, error)

    def _adder(self, group: str, name: str) -> Callable[[Any], None]:
        stream = _native.Stream("" if group is None else str(group), str(name))
        if len(self._adders) >= _MOST_KEPT:
            self._adders.clear()  # names without end: none of them comes again
        return self._adders.setdefault((group, name), stream.add)


class MetricStream:
    """A group's way to its handler."""

    def __init__(self, group_name: str, handler: MetricHandler) -> None:
        self.group_name = group_name
        self.handler = handler

    def add_value(self, metric_name: str, metric_value: float) -> None:
        """Hands a value of the metric (group, `metric_name`) to the handler, with the time."""
        handler = self.handler
        if type(handler) is ExportingMetricHandler:
            handler.add(self.group_name, metric_name, metric_value)
        else:
            handler.emit(MetricData(time.time(), self.group_name, metric_name, metric_value))


ConsoleMetricsHandler = ConsoleMetricHandler  # the documents have both spellings
NullMetricsHandler = NullMetricHandler

_exporting_handler = ExportingMetricHandler()
_null_handler = NullMetricHandler()
_default_handler: Optional[MetricHandler] = None  # None: ours where metrics are on
_handlers: Dict[str, MetricHandler] = {}


def configure(handler: MetricHandler, group: Optional[str] = None) -> None:
    """Makes `handler` that of `group`, or of all groups that have none of their own. Streams that exist keep theirs."""
    global _default_handler
    if group is None:
        _default_handler = handler
    else:
        _handlers[group] = handler


def getStream(group: str) -> MetricStream:  # noqa: N802 - torchelastic's name
    """The stream of a group, bound to the handler that the group has now."""
    handler = _handlers.get(group, _default_handler)
    if handler is None:
        handler = _exporting_handler if _native.exporting() else _null_handler
    return MetricStream(group, handler)


def put_metric(metric_name: str, metric_value: float, metric_group: str = "torchelastic") -> None:
    """Adds one value to the metric (`metric_group`, `metric_name`)."""
    getStream(metric_group).add_value(metric_name, metric_value)


def publish_metric(metric_group: str, metric_name: str, metric_value: float) -> None:
    """Deprecated: `put_metric`, with its arguments in another order."""
    warnings.warn("publish_metric is deprecated: use put_metric(name, value, group)", stacklevel=2)
    getStream(metric_group).add_value(metric_name, metric_value)


def get_elapsed_time_ms(start_time_in_seconds: float) -> int:
    """Whole milliseconds since a `time.time()`."""
    return int((time.time() - start_time_in_seconds) * 1000)


def _profiled(function: _F, name: str, put: Callable[[str, float], None]) -> _F:
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


def _metric_name(function: Callable[..., Any]) -> str:
    """`Class.method` or `module.function`, without the module's packages; whatever can be called has one."""
    while isinstance(function, functools.partial):
        function = function.func
    named = function if hasattr(function, "__qualname__") else type(function)
    name, module = named.__qualname__, named.__module__
    if "." in name or not module:
        return name
    return f"{module.rpartition('.')[2]}.{name}"


@overload
def prof(fn: _F, group: str = "torchelastic") -> _F: ...
@overload
def prof(fn: None = None, group: str = "torchelastic") -> Callable[[_F], _F]: ...
def prof(fn: Optional[_F] = None, group: str = "torchelastic") -> Union[_F, Callable[[_F], _F]]:
    """Decorates a function so that each call adds to `<name>.success` or `<name>.failure`, and `<name>.duration.ms`.

    With or without arguments: `@prof`, `@prof(group="agent")`. The name is `Class.method` or `module.function`; a partial has that of
    its function, and an object that can be called that of its class.
    """

    def wrap(function: _F) -> _F:
        return _profiled(function, _metric_name(function), lambda name, value: put_metric(name, value, group))

    return wrap if fn is None else wrap(fn)


def profile(group: Optional[str] = None) -> Callable[[_F], _F]:
    """Deprecated: as `prof(group=...)`, with the bare name of the function in the metrics' names."""
    warnings.warn("profile is deprecated: use prof", DeprecationWarning, stacklevel=2)

    def wrap(function: _F) -> _F:
        def put(name: str, value: float) -> None:
            getStream(group).add_value(name, value)  # type: ignore[arg-type]

        return _profiled(function, getattr(function, "__name__", None) or _metric_name(function), put)

    return wrap
