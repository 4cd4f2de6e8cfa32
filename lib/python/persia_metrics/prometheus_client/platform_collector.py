"""The Python that runs, with the names of prometheus_client.platform_collector."""

from __future__ import annotations

import platform as _platform
from typing import Any, Iterable, Optional

from .metrics_core import GaugeMetricFamily, Metric
from .registry import REGISTRY, Collector


class PlatformCollector(Collector):
    """The gauge `python_info`, whose labels have the versions."""

    def __init__(self, registry: Any = REGISTRY, platform: Optional[Any] = None) -> None:
        of = _platform if platform is None else platform
        major, minor, patchlevel = of.python_version_tuple()
        info = {
            "version": of.python_version(),
            "implementation": of.python_implementation(),
            "major": major,
            "minor": minor,
            "patchlevel": patchlevel,
        }
        if of.system() == "Java":
            version, _, (vm_name, vm_release, vm_vendor), _ = of.java_ver()
            info.update(jvm_version=version, jvm_release=vm_release, jvm_vendor=vm_vendor, jvm_name=vm_name)
        family = GaugeMetricFamily("python_info", "Python platform information", labels=list(info))
        family.add_metric(list(info.values()), 1)
        self._families = [family]
        if registry is not None:
            registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """The labels do not change."""
        return self._families


PLATFORM_COLLECTOR = PlatformCollector()
"""The one of the default registry. It is not copied to the agent."""
