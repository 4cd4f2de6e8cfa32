"""Counter, Gauge and Histogram with prometheus_client's interface, stored in the segment that the job's agent reads.

The native module has the methods that run in training steps: `inc`, `dec`, `set`, `observe`. A metric is identified by (group, name);
creating it twice gives the same series. Thread safety: any method, any thread.
"""

from __future__ import annotations

import math
import time
from typing import Any, Callable, Dict, Iterable, Optional, Sequence, Tuple, Type, TypeVar

from . import _native
from .timing import ExceptionCounter, ExceptionTypes, InprogressTracker, Timer

_Self = TypeVar("_Self", bound="_Labelled")

# The numbers of GaugeMerge in instruments.h.
_MERGES = {"last": 0, "sum": 1, "min": 2, "max": 3, "avg": 4, "each": 5}
# prometheus_client's live* modes are the same without `live`: the agent exports the gauges of ended processes for a while only.
_MULTIPROCESS_MODES = {"all": "each", "mostrecent": "last", "min": "min", "max": "max", "sum": "sum"}


class _Labelled:
    """A metric with label names is a family; `labels()` returns its series."""

    __slots__ = ()

    # The constructor's arguments, for series and pickles.
    _arguments: Tuple[Any, ...]
    _label_names: Tuple[str, ...]
    _values: Optional[Tuple[str, ...]]
    _children: Optional[Dict[Tuple[object, ...], Any]]
    _handle: Any  # the native base class

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _native.own_methods(cls)  # a call of an inherited native method takes 1.5 times as long

    def labels(self: _Self, *labelvalues: object, **labelkwargs: object) -> _Self:
        """Returns the series with these label values, given in the order of the names or by name. Creates it if it is new.

        In a hot loop keep the result, which saves the look-up. ValueError: the labels are not those of the metric.
        """
        children = self._children
        if children is not None and not labelkwargs:
            child = _native.find_series(children, labelvalues)
            if child is not None:
                return child  # type: ignore[no-any-return]
        return self._new_child(labelvalues, labelkwargs)

    def _new_child(self: _Self, values: Tuple[object, ...], named: Dict[str, object]) -> _Self:
        if self._children is None:
            raise ValueError("this metric has no label names" if not self._label_names else "this series already has its labels")
        if values and named:
            raise ValueError("give the label values by position or by name, not both")
        if named:
            if sorted(named) != sorted(self._label_names):
                raise ValueError(f"label names must be {sorted(self._label_names)}, not {sorted(named)}")
            values = tuple(named[name] for name in self._label_names)
        elif len(values) != len(self._label_names):
            raise ValueError(f"{len(self._label_names)} label values are needed ({', '.join(self._label_names)}), not {len(values)}")
        texts = tuple(map(str, values))
        # Two threads may both create one; their handles are of the same series.
        child: Optional[_Self] = self._children.get(texts)
        if child is None:
            child = self._children.setdefault(texts, _series(type(self), self._arguments, texts))
        return child

    def __reduce__(self) -> Tuple[Callable[..., Any], Tuple[Any, ...]]:
        """A metric that is unpickled in another process is that process's series of the same name."""
        return _unpickle, (type(self), self._arguments, self._values)

    def __repr__(self) -> str:
        group, name = self._arguments[:2]
        labels = dict(zip(self._label_names, self._values or ()))
        return f"<{type(self).__name__} {group + ' ' if group else ''}{name}{labels or ''}>"


def _series(kind: Type[_Self], arguments: Tuple[Any, ...], values: Optional[Tuple[str, ...]]) -> _Self:
    """Creates a family (label names, but `values` is None) or a series."""
    group, name, documentation, unit, label_names, *more = arguments
    family = bool(label_names) and values is None
    labels = None if family else tuple(zip(label_names, values or ()))
    made: _Self = kind._handle.__new__(kind, group, name, documentation, unit, labels, *more)
    made._arguments = arguments
    made._label_names = label_names
    made._values = values
    made._children = {} if family else None
    return made


def _unpickle(kind: Any, arguments: Tuple[Any, ...], values: Optional[Tuple[str, ...]]) -> Any:
    return _series(kind, arguments, values)


def _names(
    name: str, documentation: str, labelnames: Iterable[str], namespace: str, subsystem: str, unit: str, group: str
) -> Tuple[str, str, str, str, Tuple[str, ...]]:
    texts = (("name", name), ("documentation", documentation), ("namespace", namespace), ("subsystem", subsystem))
    for argument, text in (*texts, ("unit", unit), ("group", group)):
        if not isinstance(text, str):
            raise TypeError(f"{argument} must be str, not {type(text).__name__}")
    if namespace and group:
        raise ValueError("`namespace` is another word for `group`: give one of them")
    if isinstance(labelnames, str):
        raise TypeError(f"labelnames must be an iterable of names, not the string {labelnames!r}")
    if subsystem:
        name = f"{subsystem}_{name}"
    if unit and not name.endswith("_" + unit):
        name += "_" + unit
    label_names = tuple(labelnames)
    for label in label_names:
        if not isinstance(label, str):
            raise TypeError(f"labelnames must be str, not {type(label).__name__}")
        label.encode()  # a lone surrogate raises here, not at the first labels()
    if len(set(label_names)) != len(label_names):
        raise ValueError(f"labelnames has a duplicate: {label_names}")
    return group or namespace, name, documentation, unit, label_names


class Counter(_Labelled, _native.Counter):
    """A number that only goes up: batches trained, bytes sent. Starts at 0.

    Exported as `<group>_<name>`, or `<name>` without a group. `namespace` is another word for `group`. As in prometheus_client,
    `subsystem` and `unit` become part of the name; unlike there, `_total` is not appended. `unit` is a base unit in the plural: "seconds",
    "bytes". TypeError or ValueError: an argument has a wrong type, or label names repeat. The arguments of the other types are the same.
    """

    __slots__ = ("_arguments", "_label_names", "_values", "_children")
    _handle = _native.Counter

    def __new__(
        cls, name: str, documentation: str = "", labelnames: Iterable[str] = (),
        namespace: str = "", subsystem: str = "", unit: str = "", *, group: str = "",
    ) -> Counter:
        return _series(cls, _names(name, documentation, labelnames, namespace, subsystem, unit, group), None)

    def count_exceptions(self, exception: ExceptionTypes = Exception) -> ExceptionCounter:
        """Counts exceptions of these types that leave a `with` block or, as a decorator, a function."""
        return ExceptionCounter(self, exception)


class Gauge(_Labelled, _native.Gauge):
    """A number that goes up and down: staleness, pending batches. Not exported until it is first set.

    `merge` combines the values of several processes of one job, role and replica: "last", "sum", "min", "max",
    "avg" or "each" (no combination). "last" is the value that changed in the newest of the agent's collections; if several
    processes changed theirs in it, that of the process that started last. prometheus_client's `multiprocess_mode` is accepted too.
    ValueError: either of them is another word.
    """

    __slots__ = ("_arguments", "_label_names", "_values", "_children")
    _handle = _native.Gauge

    def __new__(
        cls, name: str, documentation: str = "", labelnames: Iterable[str] = (),
        namespace: str = "", subsystem: str = "", unit: str = "", *, group: str = "",
        merge: str = "last", multiprocess_mode: Optional[str] = None,
    ) -> Gauge:
        if multiprocess_mode is not None:
            mode = multiprocess_mode[4:] if multiprocess_mode.startswith("live") else multiprocess_mode
            if mode not in _MULTIPROCESS_MODES:
                raise ValueError(f"unknown multiprocess_mode {multiprocess_mode!r}")
            merge = _MULTIPROCESS_MODES[mode]
        if merge not in _MERGES:
            raise ValueError(f"merge must be one of {', '.join(_MERGES)}, not {merge!r}")
        names = _names(name, documentation, labelnames, namespace, subsystem, unit, group)
        return _series(cls, (*names, _MERGES[merge]), None)

    def set_to_current_time(self) -> None:
        """Sets the gauge to the Unix time, in seconds."""
        self.set(time.time())

    def track_inprogress(self) -> InprogressTracker:
        """Counts the `with` blocks or, as a decorator, the calls in progress."""
        return InprogressTracker(self)

    def time(self) -> Timer:
        """Sets the gauge to the duration of a `with` block or, as a decorator, of each call, in seconds."""
        return Timer(self, "set")


def _native_buckets(factor: float, max_buckets: int, zero_threshold: float, max_value: float) -> Tuple[float, int, float, float]:
    if not factor > 1:
        raise ValueError(f"native_factor must be above 1, not {factor}")
    if not 0 <= max_buckets <= 65535:
        raise ValueError(f"native_max_buckets must be 0 to 65535, not {max_buckets}")
    if not 2.0**-1000 <= zero_threshold < max_value <= 2.0**1000:
        raise ValueError(f"native_zero_threshold must be above 0 and below native_max_value, not {zero_threshold} and {max_value}")
    return float(factor), int(max_buckets), float(zero_threshold), float(max_value)


class Histogram(_Labelled, _native.Histogram):
    """A distribution, of durations or sizes. Exported with its buckets, sum and count.

    `buckets` are inclusive upper bounds in ascending order, in the unit of the observations; infinity may be omitted. ValueError: they
    are not ascending, none is finite, or a label is named "le".

    `native_factor` makes it a native histogram, and `buckets` must not be given. A bucket's upper bound is at most this factor (above 1)
    times its lower one; 1.1 is usual. With more populated buckets than `native_max_buckets` (0: no limit), they are exported
    coarser. Values up to `native_zero_threshold`, also negative ones, count in the zero bucket, and values above `native_max_value` in
    one more bucket. If this range needs more than 500 bounds, the buckets are coarser, too. ValueError: one of them is out of range.
    """

    __slots__ = ("_arguments", "_label_names", "_values", "_children")
    _handle = _native.Histogram

    DEFAULT_BUCKETS: Sequence[float] = (
        *(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
        math.inf,
    )
    """prometheus_client's buckets, in seconds."""

    def __new__(
        cls, name: str, documentation: str = "", labelnames: Iterable[str] = (),
        namespace: str = "", subsystem: str = "", unit: str = "", *, group: str = "",
        buckets: Iterable[float] = DEFAULT_BUCKETS,
        native_factor: Optional[float] = None, native_max_buckets: int = 160,
        native_zero_threshold: float = 2.0**-20, native_max_value: float = 2.0**20,
    ) -> Histogram:
        native: Tuple[Any, ...] = ()
        if native_factor is not None:
            if buckets is not Histogram.DEFAULT_BUCKETS:
                raise ValueError("give buckets or native_factor, not both")
            native = (_native_buckets(native_factor, native_max_buckets, native_zero_threshold, native_max_value),)
            buckets = (1.0,)  # unused
        bounds = tuple(map(float, buckets))
        if bounds and bounds[-1] == math.inf:
            bounds = bounds[:-1]
        if not bounds or list(bounds) != sorted(set(bounds)) or not all(map(math.isfinite, bounds)):
            raise ValueError(f"buckets must be ascending numbers, at least one of them finite, not {bounds}")
        names = _names(name, documentation, labelnames, namespace, subsystem, unit, group)
        if "le" in names[-1]:
            raise ValueError("a histogram cannot have the label 'le': its buckets use it")
        return _series(cls, (*names, bounds, *native), None)

    def time(self) -> Timer:
        """Observes the duration of a `with` block or, as a decorator, of each call, in seconds."""
        return Timer(self, "observe")
