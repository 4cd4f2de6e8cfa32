"""The native series of the default registry's metrics, and how they are read back."""

from __future__ import annotations

import os
import threading
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from .. import _native
from ..reading import LabelPairs, sorted_labels

_lock = threading.Lock()
_opened: Dict[Tuple[str, LabelPairs], int] = {}


class Reader:
    """One reading of the process's values, made when the first one is needed."""

    def __init__(self) -> None:
        self._values: Optional[Dict[Tuple[str, LabelPairs], Any]] = None

    def value(self, name: str, labels: LabelPairs) -> Any:
        """The native value of a series without a group, or None."""
        if self._values is None:
            self._values = values_of(_native.read_values())
        return self._values.get((name, labels))


def values_of(families: Any) -> Dict[Tuple[str, LabelPairs], Any]:
    """The values of counters, gauges and histograms without a group."""
    return {
        (name, labels): value
        for kind, group, name, _, _, series in families
        if kind <= 3 and not group
        for labels, value in series
    }


class Base:
    """A native series, and its value at the time when the metric was made: a new metric starts at 0, also after an earlier one."""

    def __init__(self, handle: Any, name: str, labels: LabelPairs) -> None:
        self.handle = handle
        self._key = name, labels
        self._pid = os.getpid()
        self._start: Any = None
        with _lock:
            again = _opened.get(self._key) == self._pid
            _opened[self._key] = self._pid
        if again:
            self.reset()

    def reset(self) -> None:
        """Subtracts from now on what was counted until now."""
        self._pid = os.getpid()
        self._start = values_of(_native.read_values("", self._key[0])).get(self._key)

    def _value(self, reader: Reader) -> Tuple[Any, Any]:
        # A forked child's series start at 0.
        return reader.value(*self._key), self._start if self._pid == os.getpid() else None

    def number(self, reader: Reader) -> float:
        """What was counted since."""
        now, start = self._value(reader)
        return float((now or 0.0) - (start or 0.0))

    def last(self, reader: Reader) -> float:
        """The value of a gauge; 0 if it was not set."""
        return float(reader.value(*self._key) or 0.0)

    def buckets(self, reader: Reader, count: int) -> Tuple[float, List[int]]:
        """The sum, and the count of each bucket."""
        now, start = self._value(reader)
        nothing: Tuple[float, Sequence[int]] = (0.0, [0] * count)
        (total, counts), (total_before, counts_before) = now or nothing, start or nothing
        return total - total_before, [a - b for a, b in zip(counts, counts_before)]


class Handles:
    """Makes native series with these labels. They have no group: prometheus_client's names are complete."""

    def __init__(self, documentation: str, unit: str, labels: Tuple[Tuple[str, str], ...]) -> None:
        self._about = documentation, unit
        self._labels = labels

    def open(self, metric: Any, name: str, *more: Any) -> Base:
        """Makes the series of the metric itself, which is a native object."""
        metric._open("", name, *self._about, self._labels, *more)
        base = Base(None, name, sorted_labels(dict(self._labels)))
        if isinstance(metric, _native.Gauge):
            base.handle = _native.Gauge("", name, *self._about, self._labels, *more)
        return base

    def counter(self, name: str) -> Base:
        """A counter beside the metric's object."""
        return Base(_native.Counter("", name, *self._about, self._labels), name, sorted_labels(dict(self._labels)))

    def remove(self, name: str, labels: Mapping[str, str]) -> None:
        """Removes a series with further labels, until it is made again."""
        _native.remove_series("", name, (*self._labels, *labels.items()))

    def info(self, name: str) -> Any:
        """An info."""
        return _native.Info("", name, *self._about, self._labels)

    def enum(self, name: str, states: Sequence[str]) -> Any:
        """An enum, whose label of the state has its name."""
        return _native.Enum("", name, *self._about, self._labels, tuple(states))
