"""Counter, Gauge, Histogram, TimeCost, Stream, Info and Enum, stored in the segment that the job's agent reads.

The native module has the methods that run in training steps: `inc`, `dec`, `set`, `observe`, `add`. A metric is identified by
(group, name); creating it twice gives the same series. Thread safety: any method, any thread.

`value()` returns what this process has recorded, in all its threads. It reads the library's own cells, as C++'s `Value()` does.
"""

from __future__ import annotations

import functools
import math
import time
from types import FunctionType
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Sequence, Tuple, Type, TypeVar

from . import _native
from .reading import HistogramValue, StreamValue, TimeCostValue
from .timing import ExceptionCounter, ExceptionTypes, InprogressTracker, Timer

_Self = TypeVar("_Self", bound="_Labelled")

# The numbers of GaugeMerge in instruments.h.
_MERGES = {"last": 0, "sum": 1, "min": 2, "max": 3, "avg": 4, "each": 5}

# The merge policy of each gauge by (group, name): a second request must have the same.
gauge_policies: Dict[Tuple[str, str], int] = {}

_DEFAULT_BOUNDS: Sequence[float] = _native.DEFAULT_BOUNDS

# A family that has more series asks whether a new one counts before it keeps it: with label values without end, the segment is full at some time.
_KEPT_UNASKED = 10_000


# What other libraries, above all prometheus_client, call an argument.
_ELSEWHERE = {
    "buckets": "bounds",
    "documentation": "help",
    "labelnames": "label_names",
    "multiprocess_mode": "merge",
    "namespace": "group",
    "subsystem": "group",
}


def _naming_arguments(make: FunctionType) -> Callable[..., Any]:
    """`make`, which says of an argument of another library what it is called here."""
    code = make.__code__
    ours = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @functools.wraps(make)
    def new(cls: type, *args: Any, **named: Any) -> Any:
        for name in named:
            if name not in ours and _ELSEWHERE.get(name) in ours:
                raise TypeError(f"{cls.__name__}() has no argument {name!r}: here it is called {_ELSEWHERE[name]!r}")
        return make(cls, *args, **named)

    return new


class _Labelled:
    """A metric with label names is a family; `labels()` returns its series."""

    __slots__ = ()

    # The constructor's arguments, for series and pickles.
    _arguments: Tuple[Any, ...]
    _label_names: Tuple[str, ...]
    _values: Optional[Tuple[str, ...]]
    _children: Optional[Dict[Tuple[object, ...], Any]]
    _handle: Any  # the native base class
    # Of each native metric that it consists of, what its name has after the metric's.
    _suffixes: Tuple[str, ...] = ("",)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _native.own_methods(cls)  # a call of an inherited native method takes 1.5 times as long
        if cls.__module__ == __name__ and "__new__" in cls.__dict__:
            setattr(cls, "__new__", staticmethod(_naming_arguments(cls.__dict__["__new__"].__func__)))

    def labels(self: _Self, *label_values: object, **labels: object) -> _Self:
        """Returns the series with these label values, given in the order of the names or by name. Creates it if it is new.

        In a hot loop keep the result, which saves the look-up. ValueError: the labels are not those of the metric.
        """
        children = self._children
        if children is not None and not labels:
            child = _native.find_series(children, label_values)
            if child is not None:
                return child  # type: ignore[no-any-return]
        return self._new_child(label_values, labels)

    def _new_child(self: _Self, values: Tuple[object, ...], named: Dict[str, object]) -> _Self:
        texts = self._texts(values, named)
        children = self._family_children()
        # Two threads may both create one; their handles are of the same series.
        child: Optional[_Self] = children.get(texts)
        if child is None:
            made = _series(type(self), self._arguments, texts)
            child = children.setdefault(texts, made) if len(children) < _KEPT_UNASKED or self._counts(texts) else made
        return child

    def _counts(self, texts: Tuple[str, ...]) -> bool:
        """Whether the library has accepted a series that was made."""
        group, name = self._arguments[:2]
        return _native.has_series(group, name, tuple(zip(self._label_names, texts)))

    def remove(self, *label_values: object) -> None:
        """Removes the series with these label values, in the order of the names: it is not exported until it is created again.

        `labels()` creates it again; it then starts from 0 in this process. What the agent exports goes on from where it was, as after a
        restart of the process, since a counter must not fall. An object that has the series from before counts for it again then. If
        other processes of one job, role and replica have the series, the agent exports it until they remove it, too. KeyError: there is no
        such series. ValueError: the label values are not those of the metric.
        """
        texts = self._texts(label_values, {})
        child = self._family_children().pop(texts, None)
        if not self._remove_series(texts, child) and child is None:
            raise KeyError(label_values)

    def remove_by_labels(self, labels: Mapping[str, object]) -> None:
        """Removes all series that have these labels, of which some may be missing, as `remove`. ValueError: a label is not the metric's."""
        children = self._family_children()
        unknown = sorted(set(labels) - set(self._label_names))
        if unknown:
            raise ValueError(f"unknown label names: {unknown}")
        wanted = {self._label_names.index(name): str(value) for name, value in labels.items()}
        for texts in list(children):
            child = children.pop(texts, None) if all(texts[at] == value for at, value in wanted.items()) else None
            if child is not None:
                self._remove_series(texts, child)

    def clear(self) -> None:
        """Removes all series, as `remove`. ValueError: the metric has no label names."""
        self.remove_by_labels({})

    def _remove_series(self, texts: Tuple[object, ...], child: Any) -> bool:
        group, name = self._arguments[:2]
        labels = tuple(zip(self._label_names, map(str, texts)))
        return any([_native.remove_series(group, name + suffix, labels) for suffix in self._suffixes])

    def _family_children(self) -> Dict[Tuple[object, ...], Any]:
        if self._children is None:
            raise ValueError("this metric has no label names" if not self._label_names else "this series already has its labels")
        return self._children

    def _texts(self, values: Tuple[object, ...], named: Dict[str, object]) -> Tuple[str, ...]:
        self._family_children()
        if values and named:
            raise ValueError("give the label values by position or by name, not both")
        if named:
            if sorted(named) != sorted(self._label_names):
                raise ValueError(f"label names must be {sorted(self._label_names)}, not {sorted(named)}")
            values = tuple(named[name] for name in self._label_names)
        elif len(values) != len(self._label_names):
            raise ValueError(f"{len(self._label_names)} label values are needed ({', '.join(self._label_names)}), not {len(values)}")
        return tuple(map(str, values))

    def _series_only(self) -> None:
        if self._children is not None:
            raise ValueError(f"{self!r} has label names: call labels() to get a series of it")

    def __reduce__(self) -> Tuple[Callable[..., Any], Tuple[Any, ...]]:
        """A metric that is unpickled in another process is that process's series of the same name."""
        return _unpickle, (type(self), self._arguments, self._values)

    def __repr__(self) -> str:
        group, name = self._arguments[:2]
        labels = dict(zip(self._label_names, self._values or ()))
        return f"<{type(self).__name__} {group + ' ' if group else ''}{name}{labels or ''}>"


def _series(kind: Type[_Self], arguments: Tuple[Any, ...], values: Optional[Tuple[str, ...]]) -> _Self:
    """Creates a family (label names, but `values` is None) or a series."""
    group, name, help_text, unit, label_names, *more = arguments
    family = bool(label_names) and values is None
    labels = None if family else tuple(zip(label_names, values or ()))
    made: _Self = kind._handle.__new__(kind, group, name, help_text, unit, labels, *more)
    made._arguments = arguments
    made._label_names = label_names
    made._values = values
    made._children = {} if family else None
    return made


def _unpickle(kind: Any, arguments: Tuple[Any, ...], values: Optional[Tuple[str, ...]]) -> Any:
    return _series(kind, arguments, values)


def _is_help(group: str, text: str) -> bool:
    """Whether it is the help text of a metric `group`, as prometheus_client's second argument is: it reads as a sentence."""
    words = text.split()
    if len(words) < 2:
        return False
    begins = words[0].isalpha() and words[0].istitle() and words[1][0].islower()
    return text.endswith(".") or begins and (len(words) > 2 or words[0].lower() in group.lower().split("_"))


def _names(group: str, name: str, help_text: str, label_names: Iterable[str], unit: str) -> Tuple[str, str, str, str, Tuple[str, ...]]:
    for argument, text in (("group", group), ("name", name), ("help", help_text), ("unit", unit)):
        if not isinstance(text, str):
            raise TypeError(f"{argument} must be str, not {type(text).__name__}")
    if not help_text and _is_help(group, name):
        raise ValueError(f"{name!r} is a text, not a name: the arguments are (group, name, help, label_names)")
    if isinstance(label_names, str):
        raise TypeError(f"label_names must be an iterable of names, not the string {label_names!r}")
    names = tuple(label_names)
    for label in names:
        if not isinstance(label, str):
            raise TypeError(f"label_names must be str, not {type(label).__name__}")
        label.encode()  # a lone surrogate raises here, not at the first labels()
    if len(set(names)) != len(names):
        raise ValueError(f"label_names has a duplicate: {names}")
    return group, name, help_text, unit, names


class Counter(_Labelled, _native.Counter):
    """A number that only goes up: batches trained, bytes sent. Starts at 0.

    Exported as `<group>_<name>`, or `<name>` if the group is empty; nothing is appended to the name. `unit` is a base unit in the
    plural: "seconds", "bytes". TypeError or ValueError: an argument has a wrong type, or label names repeat. The arguments of the other
    types are the same.
    """

    __slots__ = ("_arguments", "_label_names", "_values", "_children")
    _handle = _native.Counter

    def __new__(cls, group: str, name: str, help: str = "", label_names: Iterable[str] = (), *, unit: str = "") -> Counter:
        return _series(cls, _names(group, name, help, label_names, unit), None)

    def value(self) -> float:
        """What this process has counted; 0 if metrics are disabled. ValueError: the metric has label names."""
        return self._read()

    def set_function(self, function: Optional[Callable[[], float]]) -> None:
        """Adds the increase of a function's result from now on: for a total that other code keeps. None ends this.

        The first result is added whole, and so is one below the last. Otherwise as Gauge.set_function.
        """
        self._set_function(function)

    def count_exceptions(self, exception: ExceptionTypes = Exception) -> ExceptionCounter:
        """Counts exceptions of these types that leave a `with` block or, as a decorator, a call of a function of any kind.

        ValueError: the metric has label names.
        """
        self._series_only()
        return ExceptionCounter(self, exception)


class Gauge(_Labelled, _native.Gauge):
    """A number that goes up and down: staleness, pending batches. Not exported until it is first set.

    `merge` combines the values of several processes of one job, role and replica: "last", "sum", "min", "max",
    "avg" or "each" (no combination). "last" is the value that changed in the newest of the agent's collections; if several
    processes changed theirs in it, that of the process that started last. ValueError: it is another word.
    """

    __slots__ = ("_arguments", "_label_names", "_values", "_children")
    _handle = _native.Gauge

    def __new__(
        cls, group: str, name: str, help: str = "", label_names: Iterable[str] = (), *, unit: str = "", merge: str = "last"
    ) -> Gauge:
        if merge not in _MERGES:
            raise ValueError(f"merge must be one of {', '.join(_MERGES)}, not {merge!r}")
        names = _names(group, name, help, label_names, unit)
        gauge_policies.setdefault((group, name), _MERGES[merge])
        return _series(cls, (*names, _MERGES[merge]), None)

    def unset(self) -> None:
        """Makes it a gauge that was never set, which is not exported. ValueError: the metric has label names."""
        self._series_only()
        super().unset()

    def set_function(self, function: Optional[Callable[[], float]]) -> None:
        """Takes the value from a function from now on: of the length of a queue, for example. None ends this, and takes the value away.

        A thread of the library calls it once per period (`set_callback_period`), with Python's global lock. If it raises, returns no
        number, or takes longer than a second, the gauge has no value until it returns one; the first failure is logged, and other
        functions go on. When set_function returns, the former function does not run any more; called by that function, it returns at
        once. The interpreter's exit ends all functions, and waits for a running one at most a second. A forked child has no functions;
        it sets its own. ValueError: the metric has label names. RuntimeError: this is a subinterpreter, which Python cannot end safely
        while another thread may enter it.
        """
        self._set_function(function)

    def value(self) -> Optional[float]:
        """The value that this process has set; None if it has set none, or metrics are disabled. ValueError: the metric has label names."""
        return self._read()

    def set_to_current_time(self) -> None:
        """Sets the gauge to the Unix time, in seconds."""
        self.set(time.time())

    def track_inprogress(self) -> InprogressTracker:
        """Counts the `with` blocks or, as a decorator, the calls in progress. ValueError: the metric has label names."""
        self._series_only()
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


def _checked_bounds(bounds: Iterable[float], label_names: Tuple[str, ...]) -> Tuple[float, ...]:
    if "le" in label_names:
        raise ValueError("a histogram cannot have the label 'le': its buckets use it")
    numbers = tuple(map(float, bounds))
    if numbers and numbers[-1] == math.inf:
        numbers = numbers[:-1]
    if not numbers or list(numbers) != sorted(set(numbers)) or not all(map(math.isfinite, numbers)):
        raise ValueError(f"bounds must be ascending numbers, at least one of them finite, not {numbers}")
    return numbers


class Histogram(_Labelled, _native.Histogram):
    """A distribution, of durations or sizes. Exported with its buckets, sum and count.

    `bounds` are the inclusive upper bounds of the buckets in ascending order, in the unit of the observations; infinity may be
    omitted. ValueError: they are not ascending, none is finite, or a label is named "le".

    `native_factor` makes it a native histogram, and `bounds` must not be given. A bucket's upper bound is at most this factor (above 1)
    times its lower one; 1.1 is usual. With more populated buckets than `native_max_buckets` (0: no limit), they are exported
    coarser. Values up to `native_zero_threshold`, also negative ones, count in the zero bucket, and values above `native_max_value` in
    one more bucket. If this range needs more than 500 bounds, the buckets are coarser, too. ValueError: one of them is out of range.
    """

    __slots__ = ("_arguments", "_label_names", "_values", "_children")
    _handle = _native.Histogram

    def __new__(
        cls, group: str, name: str, help: str = "", label_names: Iterable[str] = (), *, unit: str = "",
        bounds: Iterable[float] = _DEFAULT_BOUNDS,
        native_factor: Optional[float] = None, native_max_buckets: int = 160,
        native_zero_threshold: float = 2.0**-20, native_max_value: float = 2.0**20,
    ) -> Histogram:
        names = _names(group, name, help, label_names, unit)
        native: Tuple[Any, ...] = ()
        if native_factor is not None:
            if bounds is not _DEFAULT_BOUNDS:
                raise ValueError("give bounds or native_factor, not both")
            native = (_native_buckets(native_factor, native_max_buckets, native_zero_threshold, native_max_value),)
            bounds = (1.0,)  # unused
        return _series(cls, (*names, _checked_bounds(bounds, names[-1]), *native), None)

    def value(self) -> HistogramValue:
        """What this process has observed; empty if metrics are disabled. ValueError: the metric has label names."""
        return HistogramValue(*self._read())

    def time(self) -> Timer:
        """Observes the duration of a `with` block or, as a decorator, of each call, in seconds."""
        return Timer(self, "observe")


class TimeCost(_Labelled, _native.TimeCost):
    """A duration, exported as PersiaML does: the histogram `<name>`, and the gauge `<name>_sec` with the last duration.

    `bounds` are those of the histogram, in seconds, with the errors of Histogram.
    """

    __slots__ = ("_arguments", "_label_names", "_values", "_children")
    _handle = _native.TimeCost
    _suffixes = ("", "_sec")

    def __new__(
        cls, group: str, name: str, help: str = "", label_names: Iterable[str] = (), *, unit: str = "",
        bounds: Iterable[float] = _DEFAULT_BOUNDS,
    ) -> TimeCost:
        names = _names(group, name, help, label_names, unit)
        return _series(cls, (*names, _checked_bounds(bounds, names[-1])), None)

    def value(self) -> TimeCostValue:
        """What this process has observed; empty if metrics are disabled. ValueError: the metric has label names."""
        histogram, last = self._read()
        return TimeCostValue(*histogram, last)

    def time(self) -> Timer:
        """Observes the duration of a `with` block or, as a decorator, of each call, in seconds."""
        return Timer(self, "observe")


class Stream(_Labelled, _native.Stream):
    """Measured values whose metric type the program does not fix: torchelastic's `add_value`.

    A rule of the agent decides how a stream is exported: as its last value (the default), its sum, the distribution of its values, or
    quantiles. The rule can change while the job runs.
    """

    __slots__ = ("_arguments", "_label_names", "_values", "_children")
    _handle = _native.Stream

    def __new__(cls, group: str, name: str, help: str = "", label_names: Iterable[str] = (), *, unit: str = "") -> Stream:
        return _series(cls, _names(group, name, help, label_names, unit), None)

    def value(self) -> StreamValue:
        """What this process has added; empty if metrics are disabled. ValueError: the metric has label names."""
        return StreamValue(*self._read())

    def time(self) -> Timer:
        """Adds the duration of a `with` block or, as a decorator, of each call, in seconds."""
        return Timer(self, "add")


class _LabelledTexts(_Labelled):
    """The series of an Info or an Enum has further labels, which only its handle knows."""

    __slots__ = ()

    def _counts(self, texts: Tuple[str, ...]) -> bool:
        return True

    def _remove_series(self, texts: Tuple[object, ...], child: Any) -> bool:
        return child is not None and bool(child._remove())


class Info(_LabelledTexts, _native.Info):
    """Texts about the process, for example its versions. As in prometheus_client.

    Exported as the gauge `<group>_<name>_info` of value 1, with the texts as labels. `_info` is added to the name unless it ends so.
    """

    __slots__ = ("_arguments", "_label_names", "_values", "_children")
    _handle = _native.Info

    def __new__(cls, group: str, name: str, help: str = "", label_names: Iterable[str] = (), *, unit: str = "") -> Info:
        return _series(cls, _names(group, name, help, label_names, unit), None)

    def info(self, val: Mapping[str, str]) -> None:
        """Replaces the texts. The former ones are not exported any more.

        ValueError: the metric has label names, or one of them is in `val`. TypeError: a text is not a str.
        """
        self._series_only()
        overlapping = set(self._label_names).intersection(val)
        if overlapping:
            raise ValueError(f"{sorted(overlapping)} are label names of the metric")
        self._set(tuple(val.items()))

    def unset(self) -> None:
        """Takes the texts away: the info is not exported until it is set again. ValueError: the metric has label names."""
        super().unset()


class Enum(_LabelledTexts, _native.Enum):
    """A state out of a few. As in prometheus_client.

    Exported as a gauge for each state, 1 for the current one and 0 for the others, with a label that has the metric's exported name:
    `my_app_phase{my_app_phase="train"} 1`. The first state is the initial one. ValueError: there are no states, or one is repeated.
    """

    __slots__ = ("_arguments", "_label_names", "_values", "_children")
    _handle = _native.Enum

    def __new__(
        cls, group: str, name: str, help: str = "", label_names: Iterable[str] = (), *, unit: str = "", states: Iterable[str]
    ) -> Enum:
        all_states = tuple(states)
        if not all_states or len(set(all_states)) != len(all_states):
            raise ValueError(f"states must be at least one, each once, not {all_states}")
        return _series(cls, (*_names(group, name, help, label_names, unit), all_states), None)

    def state(self, state: str) -> None:
        """Changes the state. ValueError: it is none of the metric's, or the metric has label names."""
        self._series_only()
        if state not in self._arguments[-1]:
            raise ValueError(f"{state!r} is none of the states: {', '.join(self._arguments[-1])}")
        self._set(state)

    def unset(self) -> None:
        """Takes the state away: the enum is not exported until it is set again. ValueError: the metric has label names."""
        super().unset()

    def value(self) -> Optional[str]:
        """The current state; None if it was taken away, or metrics are disabled. ValueError: the metric has label names."""
        return self._read()
