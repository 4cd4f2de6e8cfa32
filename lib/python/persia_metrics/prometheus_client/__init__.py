"""prometheus_client's interface, with metrics that the job's agent exports: `import persia_metrics.prometheus_client as prometheus_client`.

Names, arguments, errors and samples are those of prometheus_client. Metrics of the default registry are in the segment that the agent
reads, with names without a group; their methods are native. README.md lists the differences.

Thread safety: as prometheus_client, any function, from any thread.
"""

from __future__ import annotations

from . import exposition, metrics, metrics_core, registry
from .asgi import make_asgi_app
from .export import watch as _watch
from .exposition import (
    CONTENT_TYPE_LATEST,
    MetricsHandler,
    delete_from_gateway,
    generate_latest,
    instance_ip_grouping_key,
    make_wsgi_app,
    push_to_gateway,
    pushadd_to_gateway,
    start_http_server,
    start_wsgi_server,
    write_to_textfile,
)
from .gc_collector import GC_COLLECTOR, GCCollector
from .metrics import Counter, Enum, Gauge, Histogram, Info, Summary, disable_created_metrics, enable_created_metrics
from .metrics_core import Metric
from .platform_collector import PLATFORM_COLLECTOR, PlatformCollector
from .process_collector import PROCESS_COLLECTOR, ProcessCollector
from .registry import REGISTRY, CollectorRegistry

__all__ = [
    "CONTENT_TYPE_LATEST",
    "GC_COLLECTOR",
    "PLATFORM_COLLECTOR",
    "PROCESS_COLLECTOR",
    "REGISTRY",
    "CollectorRegistry",
    "Counter",
    "Enum",
    "GCCollector",
    "Gauge",
    "Histogram",
    "Info",
    "Metric",
    "MetricsHandler",
    "PlatformCollector",
    "ProcessCollector",
    "Summary",
    "delete_from_gateway",
    "disable_created_metrics",
    "enable_created_metrics",
    "generate_latest",
    "instance_ip_grouping_key",
    "make_asgi_app",
    "make_wsgi_app",
    "push_to_gateway",
    "pushadd_to_gateway",
    "start_http_server",
    "start_wsgi_server",
    "write_to_textfile",
]

_watch(GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR)
