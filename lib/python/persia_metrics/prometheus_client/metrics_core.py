"""Metric families, which custom collectors return, with the names of prometheus_client.metrics_core."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from .samples import Exemplar, Sample, Timestamp


METRIC_TYPES = ("counter", "gauge", "summary", "histogram", "gaugehistogram", "unknown", "info", "stateset")
METRIC_NAME_RE = re.compile(r"^[a-zA-Z_:][a-zA-Z0-9_:]*$")
METRIC_LABEL_NAME_RE = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_]*$")
RESERVED_METRIC_LABEL_NAME_RE = re.compile(r"^__.*$")

_Time = Optional[Union[Timestamp, float]]
_Bucket = Union[Tuple[str, float], Tuple[str, float, Exemplar]]


class Metric:
    """A metric family and its samples. ValueError: the name or the type is not one of Prometheus's."""

    def __init__(self, name: str, documentation: str, typ: str, unit: str = "") -> None:
        if unit and not name.endswith("_" + unit):
            name += "_" + unit
        if not METRIC_NAME_RE.match(name):
            raise ValueError("Invalid metric name: " + name)
        if typ == "untyped":
            typ = "unknown"
        if typ not in METRIC_TYPES:
            raise ValueError("Invalid metric type: " + typ)
        self.name: str = name
        self.documentation: str = documentation
        self.unit: str = unit
        self.type: str = typ
        self.samples: List[Sample] = []

    def add_sample(
        self, name: str, labels: Dict[str, str], value: float, timestamp: _Time = None, exemplar: Optional[Exemplar] = None
    ) -> None:
        """Adds a sample with its complete name."""
        self.samples.append(Sample(name, labels, value, timestamp, exemplar))

    def __eq__(self, other: object) -> bool:
        fields = ("name", "documentation", "type", "unit", "samples")
        return isinstance(other, Metric) and all(getattr(self, field) == getattr(other, field) for field in fields)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Metric({self.name}, {self.documentation}, {self.type}, {self.unit}, {self.samples})"

    def _restricted_metric(self, names: Any) -> Optional[Metric]:
        samples = [sample for sample in self.samples if sample.name in names]
        if not samples:
            return None
        metric = Metric(self.name, self.documentation, self.type)
        metric.samples = samples
        return metric


class _Family(Metric):
    """The constructor's work of all families: either label names, for `add_metric`, or the values of the only series."""

    def __init__(self, name: str, documentation: str, typ: str, unit: str, labels: Optional[Sequence[str]], has_value: bool) -> None:
        super().__init__(name, documentation, typ, unit)
        if labels is not None and has_value:
            raise ValueError("Can only specify at most one of value and labels.")
        self._labelnames = tuple(labels or ())

    def _add(self, suffix: str, labels: Sequence[str], value: float, timestamp: _Time, exemplar: Any = None, **more: str) -> None:
        self.add_sample(self.name + suffix, {**dict(zip(self._labelnames, labels)), **more}, value, timestamp, exemplar)


class UnknownMetricFamily(_Family):
    """A family of unknown type."""

    def __init__(
        self, name: str, documentation: str, value: Optional[float] = None, labels: Optional[Sequence[str]] = None, unit: str = ""
    ) -> None:
        super().__init__(name, documentation, "unknown", unit, labels, value is not None)
        if value is not None:
            self.add_metric([], value)

    def add_metric(self, labels: Sequence[str], value: float, timestamp: _Time = None) -> None:
        """Adds a series, by its label values."""
        self._add("", labels, value, timestamp)


UntypedMetricFamily = UnknownMetricFamily


class CounterMetricFamily(_Family):
    """A family of counters; `_total` is appended to the name of its samples."""

    def __init__(
        self, name: str, documentation: str, value: Optional[float] = None, labels: Optional[Sequence[str]] = None,
        created: Optional[float] = None, unit: str = "", exemplar: Optional[Exemplar] = None,
    ) -> None:
        super().__init__(name[:-6] if name.endswith("_total") else name, documentation, "counter", unit, labels, value is not None)
        if value is not None:
            self.add_metric([], value, created, exemplar=exemplar)

    def add_metric(
        self, labels: Sequence[str], value: float, created: Optional[float] = None, timestamp: _Time = None,
        exemplar: Optional[Exemplar] = None,
    ) -> None:
        """Adds a series. `created` is the Unix time of its first count."""
        self._add("_total", labels, value, timestamp, exemplar)
        if created is not None:
            self._add("_created", labels, created, timestamp)


class GaugeMetricFamily(_Family):
    """A family of gauges."""

    def __init__(
        self, name: str, documentation: str, value: Optional[float] = None, labels: Optional[Sequence[str]] = None, unit: str = ""
    ) -> None:
        super().__init__(name, documentation, "gauge", unit, labels, value is not None)
        if value is not None:
            self.add_metric([], value)

    def add_metric(self, labels: Sequence[str], value: float, timestamp: _Time = None) -> None:
        """Adds a series, by its label values."""
        self._add("", labels, value, timestamp)


class SummaryMetricFamily(_Family):
    """A family of summaries without quantiles."""

    def __init__(
        self, name: str, documentation: str, count_value: Optional[int] = None, sum_value: Optional[float] = None,
        labels: Optional[Sequence[str]] = None, unit: str = "",
    ) -> None:
        super().__init__(name, documentation, "summary", unit, labels, count_value is not None)
        if (sum_value is None) != (count_value is None):
            raise ValueError("count_value and sum_value must be provided together.")
        if count_value is not None and sum_value is not None:
            self.add_metric([], count_value, sum_value)

    def add_metric(self, labels: Sequence[str], count_value: int, sum_value: float, timestamp: _Time = None) -> None:
        """Adds a series: the number and the sum of its observations."""
        self._add("_count", labels, count_value, timestamp)
        self._add("_sum", labels, sum_value, timestamp)


class HistogramMetricFamily(_Family):
    """A family of histograms."""

    def __init__(
        self, name: str, documentation: str, buckets: Optional[Sequence[_Bucket]] = None, sum_value: Optional[float] = None,
        labels: Optional[Sequence[str]] = None, unit: str = "",
    ) -> None:
        super().__init__(name, documentation, "histogram", unit, labels, buckets is not None)
        if sum_value is not None and buckets is None:
            raise ValueError("sum value cannot be provided without buckets.")
        if buckets is not None:
            self.add_metric([], buckets, sum_value)

    def add_metric(
        self, labels: Sequence[str], buckets: Sequence[_Bucket], sum_value: Optional[float], timestamp: _Time = None
    ) -> None:
        """Adds a series. A bucket is its bound as text, its cumulative count, and perhaps an exemplar; the last bound is +Inf."""
        for bound, count, *exemplar in buckets:
            self._add("_bucket", labels, count, timestamp, exemplar[0] if exemplar else None, le=bound)
        # A sum of negative observations may fall.
        if float(buckets[0][0]) >= 0 and sum_value is not None:
            self._add("_count", labels, buckets[-1][1], timestamp)
            self._add("_sum", labels, sum_value, timestamp)


class GaugeHistogramMetricFamily(_Family):
    """A family of histograms whose counts may fall."""

    def __init__(
        self, name: str, documentation: str, buckets: Optional[Sequence[Tuple[str, float]]] = None, gsum_value: Optional[float] = None,
        labels: Optional[Sequence[str]] = None, unit: str = "",
    ) -> None:
        super().__init__(name, documentation, "gaugehistogram", unit, labels, buckets is not None)
        if buckets is not None:
            self.add_metric([], buckets, gsum_value)

    def add_metric(
        self, labels: Sequence[str], buckets: Sequence[Tuple[str, float]], gsum_value: Optional[float], timestamp: _Time = None
    ) -> None:
        """Adds a series, with buckets like those of HistogramMetricFamily."""
        for bound, count in buckets:
            self._add("_bucket", labels, count, timestamp, le=bound)
        self._add("_gcount", labels, buckets[-1][1], timestamp)
        self._add("_gsum", labels, gsum_value, timestamp)  # type: ignore[arg-type]


class InfoMetricFamily(_Family):
    """A family of infos: their labels are the information."""

    def __init__(
        self, name: str, documentation: str, value: Optional[Dict[str, str]] = None, labels: Optional[Sequence[str]] = None
    ) -> None:
        super().__init__(name, documentation, "info", "", labels, value is not None)
        if value is not None:
            self.add_metric([], value)

    def add_metric(self, labels: Sequence[str], value: Dict[str, str], timestamp: _Time = None) -> None:
        """Adds a series, with the information as further labels."""
        self._add("_info", labels, 1, timestamp, **value)


class StateSetMetricFamily(_Family):
    """A family of sets of states."""

    def __init__(
        self, name: str, documentation: str, value: Optional[Dict[str, bool]] = None, labels: Optional[Sequence[str]] = None
    ) -> None:
        super().__init__(name, documentation, "stateset", "", labels, value is not None)
        if value is not None:
            self.add_metric([], value)

    def add_metric(self, labels: Sequence[str], value: Dict[str, bool], timestamp: _Time = None) -> None:
        """Adds a series for each state, of which several may be true."""
        for state, enabled in sorted(value.items()):
            self._add("", labels, 1 if enabled else 0, timestamp, **{self.name: state})
