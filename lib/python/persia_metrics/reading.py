"""What this process has counted: the results of a metric's `value()`, of `snapshot()` and of `read_value()`."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Mapping, NamedTuple, Optional, Tuple, Union

from . import _native

_KINDS = {1: "counter", 2: "gauge", 3: "histogram", 4: "stream", 5: "event"}  # the numbers of ValueKind in bridge.h
_EVENT = 5

LabelPairs = Tuple[Tuple[str, str], ...]


class HistogramValue(NamedTuple):
    """The observations of a histogram."""

    count: int  # type: ignore[assignment]
    """The number of observations."""
    sum: float
    """Their sum. Differs from the buckets by observations that another thread is making."""
    bounds: Tuple[float, ...]
    """The inclusive upper bounds of the buckets, without infinity."""
    buckets: Tuple[int, ...]
    """The number of observations in each bucket, not cumulative; the last one has no upper bound."""


class TimeCostValue(NamedTuple):
    """The durations of a time cost, in seconds."""

    count: int  # type: ignore[assignment]
    """The number of durations."""
    sum: float
    """Their sum."""
    bounds: Tuple[float, ...]
    """As of a HistogramValue."""
    buckets: Tuple[int, ...]
    """As of a HistogramValue."""
    last: Optional[float]
    """The last duration; None: there is none yet."""


class StreamValue(NamedTuple):
    """The values of a stream."""

    count: int  # type: ignore[assignment]
    """The number of values, without NaNs."""
    sum: float
    """Their sum, without NaNs."""
    last: Optional[float]
    """The last value; None: there is none yet."""


Value = Union[None, float, HistogramValue]


class Series(NamedTuple):
    """One series of a snapshot."""

    kind: str
    """"counter", "gauge", "histogram", "stream" or "event". The histogram and the gauge of a time cost are two series."""
    group: str
    """The metric's group; of an event its type."""
    name: str
    """The metric's name."""
    labels: Dict[str, str]
    """Its labels."""
    value: Value
    """The number of a counter or of events, the last value of a gauge or stream (None if it was never set), or a HistogramValue."""


def sorted_labels(labels: Optional[Mapping[str, object]]) -> LabelPairs:
    """The labels as the library keeps them."""
    pairs = ((name, str(value).encode("utf-8", "backslashreplace").decode()) for name, value in (labels or {}).items())
    return tuple(sorted(pairs))


def _value_of(kind: int, bounds: Tuple[float, ...], value: Any) -> Value:
    if _KINDS[kind] != "histogram":
        return value  # type: ignore[no-any-return]
    return HistogramValue(sum(value[1]), value[0], bounds, value[1])


class Snapshot:
    """The values of all series at one time. Iteration yields each as a Series, in the order in which the families were made."""

    def __init__(self, families: Any) -> None:
        self._series: Dict[Tuple[bool, str, str, LabelPairs], Tuple[str, Value]] = {}
        for kind, group, name, _, bounds, series in families:
            for labels, value in series:
                self._series[kind == _EVENT, group, name, labels] = _KINDS[kind], _value_of(kind, bounds, value)

    def value(self, group: str, name: str, labels: Optional[Mapping[str, object]] = None) -> Value:
        """The value of a metric's series: a number, or a HistogramValue. None: there is no such series, or it was never set."""
        return self._series.get((False, group, name, sorted_labels(labels)), ("", None))[1]

    def events(self, type: str, name: str) -> int:
        """How often an event was recorded."""
        count = self._series.get((True, type, name, ()), ("", 0.0))[1]
        assert isinstance(count, float)
        return int(count)

    def __iter__(self) -> Iterator[Series]:
        for (_, group, name, labels), (kind, value) in self._series.items():
            yield Series(kind, group, name, dict(labels), value)

    def __len__(self) -> int:
        return len(self._series)

    def since(self, earlier: Snapshot) -> Snapshot:
        """The increase of counters, histograms and events since an earlier snapshot; gauges and streams are as in this one."""
        result = Snapshot(())
        result._series = {key: (kind, _increase(kind, value, earlier._series.get(key))) for key, (kind, value) in self._series.items()}
        return result


def _increase(kind: str, now: Value, earlier: Optional[Tuple[str, Value]]) -> Value:
    before = None if earlier is None else earlier[1]
    if isinstance(now, HistogramValue) and isinstance(before, HistogramValue):
        buckets = tuple(a - b for a, b in zip(now.buckets, before.buckets))
        return HistogramValue(sum(buckets), now.sum - before.sum, now.bounds, buckets)
    if kind in ("counter", "event") and isinstance(now, float) and isinstance(before, float):
        return now - before
    return now


def snapshot() -> Snapshot:
    """All that this process has counted, by name and labels: for tests and debugging, not for training steps.

    It takes about 2 µs for each series of the process. A forked child counts from 0. Empty if metrics are disabled.
    """
    return Snapshot(_native.read_values())


def read_value(group: str, name: str, labels: Optional[Mapping[str, object]] = None) -> Optional[float]:
    """One series of `snapshot()` as a number: of a histogram, the number of its observations.

    None: there is no such series, it was never set, or metrics are disabled.
    """
    return _native.read_value(group, name, sorted_labels(labels))
