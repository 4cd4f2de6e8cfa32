"""Statistics of Python's garbage collector, with the names of prometheus_client.gc_collector."""

from __future__ import annotations

import gc
from typing import Any, Iterable

from .metrics_core import CounterMetricFamily, Metric
from .registry import REGISTRY, Collector


_FAMILIES = (
    ("collected", "python_gc_objects_collected", "Objects that the garbage collector has freed."),
    ("uncollectable", "python_gc_objects_uncollectable", "Objects that the garbage collector could not free."),
    ("collections", "python_gc_collections", "Runs of the garbage collector."),
)


class GCCollector(Collector):
    """Counters by generation."""

    def __init__(self, registry: Any = REGISTRY) -> None:
        registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """Reads gc.get_stats()."""
        families = []
        stats = gc.get_stats()
        for key, name, documentation in _FAMILIES:
            family = CounterMetricFamily(name, documentation, labels=["generation"])
            for generation, counts in enumerate(stats):
                family.add_metric([str(generation)], counts[key])
            families.append(family)
        return families


GC_COLLECTOR = GCCollector()
"""The one of the default registry. It is not copied to the agent."""
