"""prometheus_client's multiprocess mode, which the agent replaces: it merges the values of all processes itself."""

from __future__ import annotations

from typing import Any, Iterable, Optional

from .metrics_core import Metric
from .registry import Collector

__all__ = ["MultiProcessCollector", "mark_process_dead"]


class MultiProcessCollector(Collector):
    """Collects nothing. A registry with it alone, which would serve the values of all processes, serves none: scrape the agent."""

    def __init__(self, registry: Any, path: Optional[str] = None) -> None:
        if registry is not None:
            registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """Nothing."""
        return []


def mark_process_dead(pid: int, path: Optional[str] = None) -> None:
    """Does nothing: the agent sees by itself that a process has ended."""
