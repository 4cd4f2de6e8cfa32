"""What custom collectors need, with the names of prometheus_client.core."""

from .metrics import Counter, Enum, Gauge, Histogram, Info, Summary
from .metrics_core import (
    CounterMetricFamily,
    GaugeHistogramMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
    StateSetMetricFamily,
    SummaryMetricFamily,
    UnknownMetricFamily,
    UntypedMetricFamily,
)
from .registry import REGISTRY, CollectorRegistry
from .samples import Exemplar, Sample, Timestamp

__all__ = [
    "REGISTRY",
    "CollectorRegistry",
    "Counter",
    "CounterMetricFamily",
    "Enum",
    "Exemplar",
    "Gauge",
    "GaugeHistogramMetricFamily",
    "GaugeMetricFamily",
    "Histogram",
    "HistogramMetricFamily",
    "Info",
    "InfoMetricFamily",
    "Metric",
    "Sample",
    "StateSetMetricFamily",
    "Summary",
    "SummaryMetricFamily",
    "Timestamp",
    "UnknownMetricFamily",
    "UntypedMetricFamily",
]
