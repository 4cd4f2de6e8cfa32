"""torchelastic's metrics API; see `.api`. `import torchelastic.metrics as metrics` is the one line of a job that changes."""

from __future__ import annotations

from typing import Optional

from .api import (
    ConsoleMetricHandler,
    ConsoleMetricsHandler,
    ExportingMetricHandler,
    MetricData,
    MetricHandler,
    MetricsConfig,
    MetricStream,
    NullMetricHandler,
    NullMetricsHandler,
    configure,
    get_elapsed_time_ms,
    getStream,
    prof,
    profile,
    publish_metric,
    put_metric,
)

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
    "initialize_metrics",
    "prof",
    "profile",
    "publish_metric",
    "put_metric",
]


def initialize_metrics(cfg: Optional[MetricsConfig] = None) -> None:
    """Does nothing, as torchelastic's: there is nothing to set up."""
