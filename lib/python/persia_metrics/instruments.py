"""Counter, Gauge, Histogram, TimeCost, Stream, Info and Enum, stored in the segment that the job's agent reads.

The native module has the methods that run in training steps: `inc`, `dec`, `set`, `observe`, `add`. A metric is identified by
(group, name); creating it twice gives the same series. Thread safety: any method, any thread.

`value()` returns what this process has recorded, in all its threads. It reads the library's own cells, as C++'s `Value()` does.
"""

from __future__ import annotations

import math
import time
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Sequence, Tuple

from . import _native
from .labelled import Labelled, checked_names, series_of
from .reading import HistogramValue, StreamValue, TimeCostValue
from .timing import ExceptionCounter, ExceptionTypes, InprogressTracker, Timer

# The numbers of GaugeMerge in instruments.h.
_MERGES = {"last": 0, "sum": 1, "min": 2, "max": 3, "avg": 4, "each": 5}

# The merge policy of each gauge by (group, name): a second request must have the same.
gauge_policies: Dict[Tuple[str, str], int] = {}

_DEFAULT_BOUNDS: Sequence[float] = _native.DEFAULT_BOUNDS


class Counter(Labelled, _native.Counter):
    """A number that only goes up: batches trained, bytes sent. Starts at 0.

    Exported as `<group>_<name>`, or `<name>` if the group is empty; nothing is appended to the name. `unit` is a base unit in the
    plural: "seconds", "bytes". TypeError or ValueError: an argument has a wrong type, or label names repeat. The arguments of the other
    types are the same.
    """

    __slots__ = ("_arguments", "_label_names", "_values", "_children")
    _handle = _native.Counter

    def __new__(cls, group: str, name: str, help: str = "", label_names: Iterable[str] = (), *, unit: str = "") -> Counter:
        return series_of(cls, checked_names(group, name, help, label_names, unit), None)

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


class Gauge(Labelled, _native.Gauge):
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
        names = checked_names(group, name, help, label_names, unit)
        gauge_policies.setdefault((group, name), _MERGES[merge])
        return series_of(cls, (*names, _MERGES[merge]), None)

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


class Histogram(Labelled, _native.Histogram):
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
        names = checked_names(group, name, help, label_names, unit)
        native: Tuple[Any, ...] = ()
        if native_factor is not None:
            if bounds is not _DEFAULT_BOUNDS:
                raise ValueError("give bounds or native_factor, not both")
            native = (_native_buckets(native_factor, native_max_buckets, native_zero_threshold, native_max_value),)
            bounds = (1.0,)  # unused
        return series_of(cls, (*names, _checked_bounds(bounds, names[-1]), *native), None)

    def value(self) -> HistogramValue:
        """What this process has observed; empty if metrics are disabled. ValueError: the metric has label names."""
        return HistogramValue(*self._read())

    def time(self) -> Timer:
        """Observes the duration of a `with` block or, as a decorator, of each call, in seconds."""
        return Timer(self, "observe")


class TimeCost(Labelled, _native.TimeCost):
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
        names = checked_names(group, name, help, label_names, unit)
        return series_of(cls, (*names, _checked_bounds(bounds, names[-1])), None)

    def value(self) -> TimeCostValue:
        """What this process has observed; empty if metrics are disabled. ValueError: the metric has label names."""
        histogram, last = self._read()
        return TimeCostValue(*histogram, last)

    def time(self) -> Timer:
        """Observes the duration of a `with` block or, as a decorator, of each call, in seconds."""
        return Timer(self, "observe")


class Stream(Labelled, _native.Stream):
    """Measured values whose metric type the program does not fix: torchelastic's `add_value`.

    A rule of the agent decides how a stream is exported: as its last value (the default), its sum, the distribution of its values, or
    quantiles. The rule can change while the job runs.
    """

    __slots__ = ("_arguments", "_label_names", "_values", "_children")
    _handle = _native.Stream

    def __new__(cls, group: str, name: str, help: str = "", label_names: Iterable[str] = (), *, unit: str = "") -> Stream:
        return series_of(cls, checked_names(group, name, help, label_names, unit), None)

    def value(self) -> StreamValue:
        """What this process has added; empty if metrics are disabled. ValueError: the metric has label names."""
        return StreamValue(*self._read())

    def time(self) -> Timer:
        """Adds the duration of a `with` block or, as a decorator, of each call, in seconds."""
        return Timer(self, "add")


class _LabelledTexts(Labelled):
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
        return series_of(cls, checked_names(group, name, help, label_names, unit), None)

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
        return series_of(cls, (*checked_names(group, name, help, label_names, unit), all_states), None)

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
