"""Copies the families of another library to this process's metrics.

The metrics are families as prometheus_client's collectors return them: with `name`, `documentation`, `type`, `unit` and `samples`.
Not thread-safe: the caller holds a lock.
"""

from __future__ import annotations

import logging
import math
from typing import Any, Dict, Iterable, List, Set, Tuple

from . import _native

_log = logging.getLogger("persia_metrics")

_Labels = Tuple[Tuple[str, str], ...]


class _Counter:
    def __init__(self, name: str, about: Tuple[str, str], labels: _Labels) -> None:
        self._to = _native.Counter("", name, *about, labels)
        self._last = 0.0

    def update(self, now: float) -> None:
        # A counter that fell was reset. The sum of a summary may fall by negative observations.
        if not math.isfinite(now):
            return
        self._to.inc(now - self._last if now >= self._last else max(now, 0))
        self._last = now


class _Sum(_Counter):
    """A sum that falls does not begin again at 0: it waits until it exceeds its former maximum."""

    def update(self, now: float) -> None:
        if now > self._last:
            super().update(now)


class _Gauge:
    merge = 0  # kLast

    def __init__(self, name: str, about: Tuple[str, str], labels: _Labels) -> None:
        self._to = _native.Gauge("", name, *about, labels, self.merge)

    def update(self, now: float) -> None:
        self._to.set(now)

    def end(self) -> None:
        self._to.unset()


class _Total(_Gauge):
    """A counter that others count."""

    merge = 3  # kMax


class _Histogram:
    def __init__(self, name: str, about: Tuple[str, str], labels: _Labels, bounds: Tuple[float, ...]) -> None:
        self._to = _native.BucketedHistogram("", name, *about, labels, bounds)
        self.bounds = bounds
        self._last: Tuple[int, ...] = (0,) * (len(bounds) + 1)
        self._last_sum = 0.0

    def update(self, counts: Tuple[int, ...], total: float) -> None:
        if any(now < last for now, last in zip(counts, self._last)):  # it was reset
            self._last, self._last_sum = (0,) * len(counts), 0.0
        self._to.add(tuple(now - last for now, last in zip(counts, self._last)), total - self._last_sum)
        self._last, self._last_sum = counts, total


class SeriesCopier:
    """Remembers what it has copied of each series."""

    def __init__(self, counted_by_others: bool) -> None:
        self._counted_by_others = counted_by_others
        self._series: Dict[Tuple[str, str, _Labels], Any] = {}
        self._told: Set[str] = set()
        self._seen: Set[Tuple[str, str, _Labels]] = set()

    def copy(self, families: Iterable[Any]) -> None:
        """Copies all families. If a series occurs twice, the first one is copied. A gauge that is missing is unset."""
        self._seen = set()
        for family in families:
            try:
                self._copy_family(family)
            except (TypeError, ValueError, AttributeError) as error:
                self._tell(getattr(family, "name", repr(family)), f"{type(error).__name__}: {error}")
        for key in self._series.keys() - self._seen:
            series = self._series[key]
            if isinstance(series, _Gauge):
                series.end()
                del self._series[key]

    def _tell(self, name: str, why: str) -> None:
        if name not in self._told:
            self._told.add(name)
            _log.warning("metric %r of another library is not exported: %s", name, why)

    def _copy_family(self, family: Any) -> None:
        about = (family.documentation or "", family.unit or "")
        if self._counted_by_others and family.type in ("histogram", "summary"):
            self._tell(family.name, f"a {family.type} is copied with counted_by_others=False only, of this process")
        elif family.type == "histogram":
            self._copy_histograms(family, about)
        else:
            for sample in family.samples:
                if sample.name != family.name + "_created":
                    series = self._find(self._kind(family, sample), sample.name, about, _pairs(sample.labels))
                    if series is not None:
                        series.update(float(sample.value))

    def _kind(self, family: Any, sample: Any) -> Any:
        if family.type == "counter":
            return _Total if self._counted_by_others else _Counter
        if family.type == "summary" and sample.name == family.name + "_count":
            return _Counter
        return _Sum if family.type == "summary" and sample.name == family.name + "_sum" else _Gauge

    def _find(self, kind: Any, name: str, about: Tuple[str, str], labels: _Labels, *more: Any) -> Any:
        """The series, which is made if it is new. None: it was copied already in this round."""
        key = (kind.__name__, name, labels)
        if key in self._seen:
            return None
        self._seen.add(key)
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = kind(name, about, labels, *more)
        return series

    def _copy_histograms(self, family: Any, about: Tuple[str, str]) -> None:
        buckets: Dict[_Labels, List[Tuple[float, int]]] = {}
        sums: Dict[_Labels, float] = {}
        for sample in family.samples:
            if sample.name == family.name + "_bucket":
                others = {name: value for name, value in sample.labels.items() if name != "le"}
                buckets.setdefault(_pairs(others), []).append((float(sample.labels["le"]), int(sample.value)))
            elif sample.name == family.name + "_sum":
                sums[_pairs(sample.labels)] = float(sample.value)
        for labels, cumulative in buckets.items():
            bounds = tuple(bound for bound, _ in cumulative if bound != math.inf)
            counts = tuple(now - before for (_, now), (_, before) in zip(cumulative, [(0.0, 0), *cumulative]))
            if len(counts) != len(bounds) + 1 or min(counts) < 0:
                raise ValueError("its buckets do not ascend to +Inf")
            series = self._find(_Histogram, family.name, about, labels, bounds)
            if series is not None and series.bounds != bounds:
                self._tell(family.name, "it has changed its bounds")
            elif series is not None:
                series.update(counts, sums.get(labels, 0.0))


def _pairs(labels: Dict[str, Any]) -> _Labels:
    return tuple(sorted((name, str(value)) for name, value in labels.items()))
