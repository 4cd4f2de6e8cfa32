"""Counter, Gauge, Summary, Histogram, Info and Enum with prometheus_client's arguments, errors and samples.

Metrics of the default registry are series of the segment that the job's agent reads, and their methods are native. Metrics of another
registry are values in Python, which reach the agent when the registry is exposed: see `exposition`.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple, Type, TypeVar, Union

from .. import _native
from ..instruments import gauge_policies
from ..timing import ExceptionCounter, InprogressTracker, Timer
from .metrics_core import METRIC_LABEL_NAME_RE, METRIC_NAME_RE, RESERVED_METRIC_LABEL_NAME_RE, Metric
from .registry import REGISTRY, Collector, CollectorRegistry
from .samples import Exemplar, Sample
from .utils import INF, floatToGoString
from .values import Handles, Reader

_log = logging.getLogger("persia_metrics")

T = TypeVar("T", bound="MetricWrapperBase")
_ExceptionTypes = Union[Type[BaseException], Tuple[Type[BaseException], ...]]

def _get_use_created() -> bool:
    return os.environ.get("PROMETHEUS_DISABLE_CREATED_SERIES", "").lower() not in ("true", "1", "t")


_use_created = _get_use_created()


def disable_created_metrics() -> None:
    """Leaves the samples `_created` out of what registries collect. The agent has its own start times."""
    global _use_created
    _use_created = False


def enable_created_metrics() -> None:
    """Undoes disable_created_metrics()."""
    global _use_created
    _use_created = True


def _full_name(kind: str, name: str, namespace: str, subsystem: str, unit: str) -> str:
    full = "_".join(part for part in (namespace, subsystem, name) if part)
    if kind == "counter" and full.endswith("_total"):
        full = full[:-6]
    if unit and kind in ("info", "stateset"):
        raise ValueError(f"Metric name is of a type that cannot have a unit: {full}")
    if unit and not full.endswith("_" + unit):
        full += "_" + unit
    if not METRIC_NAME_RE.match(full):
        raise ValueError("Invalid metric name: " + full)
    return full


def _check_label_name(name: str) -> None:
    if not METRIC_LABEL_NAME_RE.match(name):
        raise ValueError("Invalid label metric name: " + name)
    if RESERVED_METRIC_LABEL_NAME_RE.match(name):
        raise ValueError("Reserved label metric name: " + name)


def _checked_exemplar(labels: Dict[str, str], value: float) -> Exemplar:
    for name in labels:
        _check_label_name(name)
    if sum(len(name) + len(text) for name, text in labels.items()) > 128:
        raise ValueError("Exemplar labels have more than the limit of 128 UTF-8 characters")
    return Exemplar(labels, value, time.time())


class MetricWrapperBase(Collector):
    """What all metrics have. A metric with label names is a family; `labels()` returns its series."""

    _type = ""
    _reserved_labelnames: Sequence[str] = ()
    _exported = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _native.own_methods(cls, True)  # a call of an inherited native method takes 1.5 times as long

    def __init__(
        self,
        name: str,
        documentation: str,
        labelnames: Iterable[str] = (),
        namespace: str = "",
        subsystem: str = "",
        unit: str = "",
        registry: Optional[CollectorRegistry] = REGISTRY,
        _labelvalues: Optional[Sequence[str]] = None,
    ) -> None:
        self._name = _full_name(self._type, name, namespace, subsystem, unit)
        self._labelnames = tuple(labelnames)
        for label in self._labelnames:
            _check_label_name(label)
            if label in self._reserved_labelnames:
                raise ValueError("Reserved label metric name: " + label)
        self._documentation = documentation
        self._unit = unit
        self._labelvalues: Tuple[str, ...] = tuple(_labelvalues or ())
        self._exported = registry is REGISTRY
        self._lock = threading.RLock()
        self._metrics: Dict[Tuple[object, ...], Any] = {}
        if registry is not None and not self._labelvalues:
            registry.register(self)  # first: a name that the registry has makes no series
        if self._is_observable():
            self._metric_init()

    def _is_parent(self) -> bool:
        return bool(self._labelnames) and not self._labelvalues

    def _is_observable(self) -> bool:
        return not self._is_parent()

    def _raise_if_not_observable(self) -> None:
        if not self._is_observable():
            raise ValueError(f"{self._type} metric is missing label values")

    def _metric_init(self) -> None:
        """Makes the series of a metric that has no label names, or all label values."""
        raise NotImplementedError

    def labels(self: T, *labelvalues: Any, **labelkwargs: Any) -> T:
        """Returns the series with these label values, by position or by name. Creates it if it is new.

        In a hot loop keep the result. ValueError: the labels are not those of the metric.
        """
        if not labelkwargs:
            found = _native.find_series(self._metrics, labelvalues)
            if found is not None:
                return found  # type: ignore[no-any-return]
        if not self._labelnames:
            raise ValueError(f"No label names were set when constructing {self}")
        if self._labelvalues:
            have = dict(zip(self._labelnames, self._labelvalues))
            raise ValueError(f"{self} already has labels set ({have}); can not chain calls to .labels()")
        values = self._values_of(labelvalues, labelkwargs)
        with self._lock:
            if values not in self._metrics:
                self._metrics[values] = self._child(values)
            return self._metrics[values]  # type: ignore[no-any-return]

    def _values_of(self, values: Tuple[Any, ...], named: Dict[str, Any]) -> Tuple[str, ...]:
        if values and named:
            raise ValueError("Can't pass both *args and **kwargs")
        if named:
            if sorted(named) != sorted(self._labelnames):
                raise ValueError("Incorrect label names")
            values = tuple(named[name] for name in self._labelnames)
        elif len(values) != len(self._labelnames):
            raise ValueError("Incorrect label count")
        return tuple(map(str, values))

    def _child(self: T, values: Tuple[str, ...]) -> T:
        child = type(self).__new__(type(self))
        child.__dict__.update(self.__dict__)
        child._labelvalues = values
        child._lock = threading.RLock()
        child._metrics = {}
        child._metric_init()
        return child

    def remove(self, *labelvalues: Any) -> None:
        """Removes a series from the metric. KeyError: there is none with these values.

        The agent no longer exports it. A series that is made again starts at 0 here, and goes on there, since a counter must not fall.
        """
        if not self._labelnames:
            raise ValueError(f"No label names were set when constructing {self}")
        if len(labelvalues) != len(self._labelnames):
            raise ValueError(f"Incorrect label count (expected {len(self._labelnames)}, got {labelvalues})")
        with self._lock:
            self._metrics.pop(tuple(map(str, labelvalues)))._end()

    def remove_by_labels(self, labels: Dict[str, str]) -> None:
        """Removes all series that have these labels, of which some may be missing. ValueError: a label is not the metric's."""
        if not self._labelnames:
            raise ValueError(f"No label names were set when constructing {self}")
        unknown = set(labels) - set(self._labelnames)
        if unknown:
            raise ValueError(f"Unknown label names: {sorted(unknown)}")
        with self._lock:
            for values in list(self._metrics):
                have = dict(zip(self._labelnames, values))
                if all(have[name] == str(value) for name, value in labels.items()):
                    self._metrics.pop(values)._end()

    def clear(self) -> None:
        """Removes all series, as `remove`."""
        with self._lock:
            former, self._metrics = self._metrics, {}
        for child in former.values():
            child._end()

    def _end(self) -> None:
        """The series was removed."""
        if self._exported:
            for name, labels in self._native_series():
                self._handles().remove(name, labels)

    def _native_series(self) -> Iterable[Tuple[str, Dict[str, str]]]:
        """The names of the native series, and their labels beside those of this metric."""
        return [(self._name, {})]

    def describe(self) -> Iterable[Metric]:
        """The family without its samples."""
        return [self._family()]

    def _family(self) -> Metric:
        return Metric(self._name, self._documentation, self._type, self._unit)

    def collect(self) -> Iterable[Metric]:
        """The family with the samples of now."""
        return self._collect(self._new_reader())

    @staticmethod
    def _new_reader() -> Reader:
        return Reader()

    def _collect(self, reader: Reader) -> Iterable[Metric]:
        metric = self._family()
        for sample in self._multi_samples(reader) if self._is_parent() else self._child_samples(reader):
            metric.samples.append(sample._replace(name=self._name + sample.name))
        return [metric]

    def _multi_samples(self, reader: Reader) -> Iterable[Sample]:
        with self._lock:
            children = list(self._metrics.values())
        for child in children:
            labels = dict(zip(child._labelnames, child._labelvalues))
            for sample in child._child_samples(reader):
                yield sample._replace(labels={**labels, **sample.labels})

    def _child_samples(self, reader: Reader) -> Iterable[Sample]:
        raise NotImplementedError

    def _handles(self) -> Handles:
        """Makes the native series of this metric, with its labels."""
        return Handles(self._documentation, self._unit, tuple(zip(self._labelnames, self._labelvalues)))

    def _created_samples(self) -> List[Sample]:
        return [Sample("_created", {}, self._created)] if _use_created else []

    _created = 0.0

    def __str__(self) -> str:
        return f"{self._type}:{self._name}"

    def __repr__(self) -> str:
        return f"{type(self).__module__}.{type(self).__name__}({self._name})"


class Counter(MetricWrapperBase, _native.Counter):
    """A number that only goes up. Its sample, and the agent's series, is `<name>_total`."""

    _type = "counter"

    if TYPE_CHECKING:  # a native method

        def inc(self, amount: _native._Number = 1, exemplar: Optional[Dict[str, str]] = None) -> None: ...

    else:

        def __new__(cls, *args: Any, **kwargs: Any) -> Counter:
            return _native.Counter.__new__(cls, "", "", "", "", None)

    def _metric_init(self) -> None:
        self._created = time.time()
        self._exemplar: Optional[Exemplar] = None
        self._local = 0.0
        if self._exported:
            self._base = self._handles().open(self, self._name + "_total")

    def _inc(self, amount: float = 1, exemplar: Optional[Dict[str, str]] = None) -> None:
        self._raise_if_not_observable()
        if amount < 0:
            raise ValueError("Counters can only be incremented by non-negative amounts.")
        if self._exported:
            _native.Counter.inc(self, amount)
        else:
            with self._lock:
                self._local += amount
        if exemplar:
            self._exemplar = _checked_exemplar(exemplar, amount)

    def _native_series(self) -> Iterable[Tuple[str, Dict[str, str]]]:
        return [(self._name + "_total", {})]

    def reset(self) -> None:
        """Sets the counter to 0 here. The agent's series goes on, since a counter must not fall."""
        self._raise_if_not_observable()
        with self._lock:
            self._local = 0.0
            self._created = time.time()
            if self._exported:
                self._base.reset()

    def count_exceptions(self, exception: _ExceptionTypes = Exception) -> ExceptionCounter:
        """Counts exceptions of these types that leave a `with` block or, as a decorator, a call of a function of any kind."""
        self._raise_if_not_observable()
        return ExceptionCounter(self, exception)

    def _child_samples(self, reader: Reader) -> Iterable[Sample]:
        value = self._base.number(reader) if self._exported else self._local
        return [Sample("_total", {}, value, None, self._exemplar), *self._created_samples()]


_MERGES = {"all": 5, "mostrecent": 0, "min": 2, "max": 3, "sum": 1}  # the numbers of GaugeMerge in instruments.h


class Gauge(MetricWrapperBase, _native.Gauge):
    """A number that goes up and down. Starts at 0.

    `multiprocess_mode` combines the values of several processes of one job, role and replica: "all" has a series for each, "mostrecent"
    is the last one (the default), "min", "max" and "sum". The modes with "live" are the same: the agent exports the gauges of ended
    processes for a while only.
    """

    _type = "gauge"
    _MULTIPROC_MODES = frozenset(mode for name in _MERGES for mode in (name, "live" + name))
    _MOST_RECENT_MODES = frozenset(("mostrecent", "livemostrecent"))

    if not TYPE_CHECKING:

        def __new__(cls, *args: Any, **kwargs: Any) -> Gauge:
            return _native.Gauge.__new__(cls, "", "", "", "", None, 0)

    def __init__(
        self,
        name: str,
        documentation: str,
        labelnames: Iterable[str] = (),
        namespace: str = "",
        subsystem: str = "",
        unit: str = "",
        registry: Optional[CollectorRegistry] = REGISTRY,
        _labelvalues: Optional[Sequence[str]] = None,
        multiprocess_mode: str = "mostrecent",
    ) -> None:
        if multiprocess_mode not in self._MULTIPROC_MODES:
            raise ValueError("Invalid multiprocess mode: " + multiprocess_mode)
        self._multiprocess_mode = multiprocess_mode
        self._merge = _MERGES[multiprocess_mode[4:] if multiprocess_mode.startswith("live") else multiprocess_mode]
        super().__init__(name, documentation, labelnames, namespace, subsystem, unit, registry, _labelvalues)

    def _metric_init(self) -> None:
        self._local = 0.0
        self._function: Optional[Callable[[], float]] = None
        if self._exported:
            gauge_policies.setdefault(("", self._name), self._merge)
            self._base = self._handles().open(self, self._name, self._merge)
            self.set(0)

    def _inc(self, amount: float = 1) -> None:
        self._raise_if_not_observable()
        if self._usable:
            return _native.Gauge.inc(self, amount)
        with self._lock:
            self._local += amount

    def _dec(self, amount: float = 1) -> None:
        self._inc(-amount)

    def _set(self, value: float) -> None:
        self._raise_if_not_observable()
        if self._usable:
            return _native.Gauge.set(self, float(value))
        with self._lock:
            self._local = float(value)

    def set_to_current_time(self) -> None:
        """Sets the gauge to the Unix time, in seconds."""
        self.set(time.time())

    def track_inprogress(self) -> InprogressTracker:
        """Counts the `with` blocks or, as a decorator, the calls in progress."""
        self._raise_if_not_observable()
        return InprogressTracker(self)

    def time(self) -> Timer:
        """Sets the gauge to the duration of a `with` block or, as a decorator, of each call, in seconds."""
        return Timer(self, "set")

    def set_function(self, f: Callable[[], float]) -> None:
        """Takes the value from a function, and other methods have no effect any more.

        It is called when a registry collects and, for the agent, as persia_metrics.Gauge.set_function says.
        """
        self._raise_if_not_observable()
        self._function = f
        if self._exported:
            self._usable = False
            try:
                self._base.handle._set_function(f)
            except RuntimeError as error:
                _log.warning("the function of %r is not called for the agent: %s", self, error)

    def _end(self) -> None:
        if self._exported and self._function is not None:
            self._base.handle._set_function(None)
        self._function = None
        super()._end()

    def _child_samples(self, reader: Reader) -> Iterable[Sample]:
        if self._function is not None:
            value = float(self._function())
        elif self._exported:
            value = self._base.last(reader)
        else:
            value = self._local
        return [Sample("", {}, value)]


class Summary(MetricWrapperBase):
    """The number and the sum of observations. The agent's series are the counters `<name>_count` and `<name>_sum`.

    A counter cannot fall: negative observations enter the agent's `<name>_count`, and not its `<name>_sum`.
    """

    _type = "summary"
    _reserved_labelnames = ("quantile",)

    def _metric_init(self) -> None:
        self._created = time.time()
        self._count = self._sum = 0.0
        self._negative = 0.0
        if self._exported:
            handles = self._handles()
            self._count_base = handles.counter(self._name + "_count")
            self._sum_base = handles.counter(self._name + "_sum")

    def observe(self, amount: float) -> None:
        """Adds one observation."""
        self._raise_if_not_observable()
        if not self._exported:
            with self._lock:
                self._count += 1
                self._sum += amount
            return
        self._count_base.handle.inc()
        if amount >= 0:
            self._sum_base.handle.inc(amount)
        else:
            with self._lock:
                self._negative += amount

    def _native_series(self) -> Iterable[Tuple[str, Dict[str, str]]]:
        return [(self._name + "_count", {}), (self._name + "_sum", {})]

    def time(self) -> Timer:
        """Observes the duration of a `with` block or, as a decorator, of each call, in seconds."""
        return Timer(self, "observe")

    def _child_samples(self, reader: Reader) -> Iterable[Sample]:
        if self._exported:
            count, total = self._count_base.number(reader), self._sum_base.number(reader) + self._negative
        else:
            count, total = self._count, self._sum
        return [Sample("_count", {}, count), Sample("_sum", {}, total), *self._created_samples()]


class Histogram(MetricWrapperBase, _native.Histogram):
    """A distribution. `buckets` are inclusive upper bounds in ascending order; by default prometheus_client's."""

    _type = "histogram"
    _reserved_labelnames = ("le",)
    DEFAULT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, INF)
    """prometheus_client's buckets, in seconds."""

    if TYPE_CHECKING:  # a native method

        def observe(self, amount: _native._Number, exemplar: Optional[Dict[str, str]] = None) -> None: ...

    else:

        def __new__(cls, *args: Any, **kwargs: Any) -> Histogram:
            return _native.Histogram.__new__(cls, "", "", "", "", None, (1.0,))

    def __init__(
        self,
        name: str,
        documentation: str,
        labelnames: Iterable[str] = (),
        namespace: str = "",
        subsystem: str = "",
        unit: str = "",
        registry: Optional[CollectorRegistry] = REGISTRY,
        _labelvalues: Optional[Sequence[str]] = None,
        buckets: Sequence[Union[float, str]] = DEFAULT_BUCKETS,
    ) -> None:
        bounds = [float(bound) for bound in buckets]
        if bounds != sorted(bounds):
            raise ValueError("Buckets not in sorted order")
        if bounds and bounds[-1] != INF:
            bounds.append(INF)
        if len(bounds) < 2:
            raise ValueError("Must have at least two buckets")
        self._upper_bounds = bounds
        super().__init__(name, documentation, labelnames, namespace, subsystem, unit, registry, _labelvalues)

    def _metric_init(self) -> None:
        self._created = time.time()
        self._counts = [0] * len(self._upper_bounds)
        self._sum = 0.0
        self._exemplars: Dict[int, Exemplar] = {}
        if self._exported:
            self._base = self._handles().open(self, self._name, tuple(self._upper_bounds[:-1]))

    def _observe(self, amount: float, exemplar: Optional[Dict[str, str]] = None) -> None:
        self._raise_if_not_observable()
        bucket = bisect_left(self._upper_bounds, amount)
        if self._exported:
            _native.Histogram.observe(self, amount)
        else:
            with self._lock:
                self._sum += amount
                if bucket < len(self._counts):  # a NaN is in no bucket
                    self._counts[bucket] += 1
        if exemplar:
            self._exemplars[bucket] = _checked_exemplar(exemplar, amount)

    def time(self) -> Timer:
        """Observes the duration of a `with` block or, as a decorator, of each call, in seconds."""
        return Timer(self, "observe")

    def _child_samples(self, reader: Reader) -> Iterable[Sample]:
        if self._exported:
            total, counts = self._base.buckets(reader, len(self._upper_bounds))
        else:
            with self._lock:
                total, counts = self._sum, list(self._counts)
        samples = []
        cumulative = 0
        for i, (bound, count) in enumerate(zip(self._upper_bounds, counts)):
            cumulative += count
            samples.append(Sample("_bucket", {"le": floatToGoString(bound)}, float(cumulative), None, self._exemplars.get(i)))
        samples.append(Sample("_count", {}, float(cumulative)))
        if self._upper_bounds[0] >= 0:
            samples.append(Sample("_sum", {}, total))
        return samples + self._created_samples()


class Info(MetricWrapperBase):
    """Labels that describe the process. The agent's series is the gauge `<name>_info` with the value 1."""

    _type = "info"

    def _metric_init(self) -> None:
        self._value: Dict[str, str] = {}
        if self._exported:
            self._base = self._handles().info(self._name + "_info")
            self._base._set(())

    def info(self, val: Dict[str, str]) -> None:
        """Sets the labels. ValueError: one of them is a label of the metric, or its name or value is none."""
        if set(self._labelnames).intersection(val):
            raise ValueError(f"Overlapping labels for Info metric, metric: {self._labelnames} child: {val}")
        if any(value is None for value in val.values()):
            raise ValueError("Label value cannot be None")
        self._raise_if_not_observable()
        with self._lock:
            self._value = dict(val)
            if self._exported:
                self._base._set(tuple(self._value.items()))

    def _native_series(self) -> Iterable[Tuple[str, Dict[str, str]]]:
        return [(self._name + "_info", self._value)]

    def _child_samples(self, reader: Reader) -> Iterable[Sample]:
        with self._lock:
            return [Sample("_info", self._value, 1.0)]


class Enum(MetricWrapperBase):
    """One of several states. The agent's series are gauges of 0 and 1, whose label of the metric's name has the state."""

    _type = "stateset"

    def __init__(
        self,
        name: str,
        documentation: str,
        labelnames: Sequence[str] = (),
        namespace: str = "",
        subsystem: str = "",
        unit: str = "",
        registry: Optional[CollectorRegistry] = REGISTRY,
        _labelvalues: Optional[Sequence[str]] = None,
        states: Optional[Sequence[str]] = None,
    ) -> None:
        if name in labelnames:
            raise ValueError(f"Overlapping labels for Enum metric: {name}")
        if not states:
            raise ValueError(f"No states provided for Enum metric: {name}")
        self._states = list(states)
        super().__init__(name, documentation, labelnames, namespace, subsystem, unit, registry, _labelvalues)

    def _metric_init(self) -> None:
        self._value = 0
        if self._exported:
            self._base = self._handles().enum(self._name, self._states)
            self._base._set(self._states[0])

    def state(self, state: str) -> None:
        """Sets the state. ValueError: it is none of the metric's."""
        self._raise_if_not_observable()
        with self._lock:
            self._value = self._states.index(state)
            if self._exported:
                self._base._set(state)

    def _native_series(self) -> Iterable[Tuple[str, Dict[str, str]]]:
        return [(self._name, {self._name: state}) for state in self._states]

    def _child_samples(self, reader: Reader) -> Iterable[Sample]:
        with self._lock:
            return [Sample("", {self._name: state}, 1 if i == self._value else 0) for i, state in enumerate(self._states)]
