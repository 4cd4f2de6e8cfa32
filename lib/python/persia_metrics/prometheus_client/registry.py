"""Registries of collectors, with the names of prometheus_client.registry."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional

from .metrics_core import Metric


_SUFFIXES = {
    "counter": ("_total", "_created"),
    "summary": ("_sum", "_count", "_created"),
    "histogram": ("_bucket", "_sum", "_count", "_created"),
    "gaugehistogram": ("_bucket", "_gsum", "_gcount"),
    "info": ("_info",),
}


class Collector(ABC):
    """Something that returns metrics when it is asked."""

    @abstractmethod
    def collect(self) -> Iterable[Metric]:
        """The metric families of now."""


class _TargetInfo(Collector):
    def collect(self) -> Iterable[Metric]:
        return ()


class CollectorRegistry(Collector):
    """Collectors, and the names of their series, each of which only one of them may have.

    `auto_describe`: asks a collector without `describe` for its metrics, to know their names. `target_info`: labels of the target.
    """

    def __init__(self, auto_describe: bool = False, target_info: Optional[Dict[str, str]] = None) -> None:
        self._collector_to_names: Dict[Any, List[str]] = {}
        self._names_to_collectors: Dict[str, Any] = {}
        self._auto_describe = auto_describe
        self._lock = threading.RLock()
        self._target_info: Optional[Dict[str, str]] = {}
        # Called when a collector is registered that is no metric of this package: it has to be copied to the agent.
        self._on_custom: Optional[Callable[[], None]] = None
        self.set_target_info(target_info)

    def register(self, collector: Any) -> None:
        """Adds a collector: any object with a method `collect`. ValueError: the registry has one of its names already."""
        with self._lock:
            names = self._get_names(collector)
            duplicates = set(self._names_to_collectors).intersection(names)
            if duplicates:
                raise ValueError(f"Duplicated timeseries in CollectorRegistry: {duplicates}")
            for name in names:
                self._names_to_collectors[name] = collector
            self._collector_to_names[collector] = names
        if self._on_custom is not None and not getattr(collector, "_exported", False):
            self._on_custom()

    def unregister(self, collector: Any) -> None:
        """Removes a collector. KeyError: it is not registered."""
        with self._lock:
            for name in self._collector_to_names.pop(collector):
                del self._names_to_collectors[name]

    def _get_names(self, collector: Any) -> List[str]:
        describe = getattr(collector, "describe", None)
        if describe is None:
            if not self._auto_describe:
                return []
            describe = collector.collect
        return [metric.name + suffix for metric in describe() for suffix in ("", *_SUFFIXES.get(metric.type, ()))]

    def collectors(self) -> List[Any]:
        """The registered collectors, in the order of their registration."""
        with self._lock:
            return list(self._collector_to_names)

    def collect(self) -> Iterator[Metric]:
        """Yields the metric families of all collectors."""
        with self._lock:
            target = self._target_info_metric() if self._target_info else None
            collectors = list(self._collector_to_names)
        if target is not None:
            yield target
        reader: Any = None
        for collector in collectors:
            if getattr(collector, "_exported", False):
                # One reading of the process's values serves all.
                reader = reader or collector._new_reader()
                yield from collector._collect(reader)
            else:
                yield from collector.collect()

    def restricted_registry(self, names: Iterable[str]) -> RestrictedRegistry:
        """A view with only the samples of these names."""
        return RestrictedRegistry(names, self)

    def set_target_info(self, labels: Optional[Dict[str, str]]) -> None:
        """Sets the labels of `target_info`, or removes it. ValueError: a metric has that name."""
        with self._lock:
            if labels:
                if not self._target_info and "target_info" in self._names_to_collectors:
                    raise ValueError("CollectorRegistry already contains a target_info metric")
                self._names_to_collectors["target_info"] = _TargetInfo()
            elif self._target_info:
                self._names_to_collectors.pop("target_info", None)
            self._target_info = labels

    def get_target_info(self) -> Optional[Dict[str, str]]:
        """The labels of `target_info`."""
        with self._lock:
            return self._target_info

    def _target_info_metric(self) -> Metric:
        metric = Metric("target", "Target metadata", "info")
        metric.add_sample("target_info", self._target_info or {}, 1)
        return metric

    def get_sample_value(self, name: str, labels: Optional[Dict[str, str]] = None) -> Optional[float]:
        """The value of the sample with this name and exactly these labels, or None. For tests: it collects everything."""
        for metric in self.collect():
            for sample in metric.samples:
                if sample.name == name and sample.labels == (labels or {}):
                    return sample.value
        return None


class RestrictedRegistry:
    """A registry's samples of some names."""

    def __init__(self, names: Iterable[str], registry: CollectorRegistry) -> None:
        self._name_set = set(names)
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        """Yields the families that have such samples, with these samples only."""
        registry = self._registry
        with registry._lock:
            target = registry._target_info_metric() if "target_info" in self._name_set and registry._target_info else None
            collectors = []
            for name in self._name_set - {"target_info"}:
                collector = registry._names_to_collectors.get(name)
                if collector is not None and collector not in collectors:
                    collectors.append(collector)
        if target is not None:
            yield target
        for collector in collectors:
            for metric in collector.collect():
                restricted = metric._restricted_metric(self._name_set)
                if restricted is not None:
                    yield restricted


REGISTRY = CollectorRegistry(auto_describe=True)
"""The default registry. Its metrics are in the segment that the job's agent reads."""
