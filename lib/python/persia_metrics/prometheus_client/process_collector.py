"""The process's own costs, from /proc, with the names of prometheus_client.process_collector."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Any, Callable, Iterable, List, Union

from .metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from .registry import REGISTRY, Collector


_PAGE_BYTES = resource.getpagesize()


class ProcessCollector(Collector):
    """Memory, processor time, start and descriptors of the process `pid()`. Nothing where there is no /proc.

    `namespace` is a prefix of the names. `proc` is the mounted /proc.
    """

    def __init__(
        self, namespace: str = "", pid: Callable[[], Union[int, str]] = lambda: "self", proc: str = "/proc", registry: Any = REGISTRY
    ) -> None:
        self._prefix = f"{namespace}_process_" if namespace else "process_"
        self._pid = pid
        self._proc = Path(proc)
        self._ticks = float(os.sysconf("SC_CLK_TCK"))
        self._boot_time = 0.0
        try:
            lines = (self._proc / "stat").read_bytes().splitlines()
            self._boot_time = next((float(line.split()[1]) for line in lines if line.startswith(b"btime ")), 0.0)
        except OSError:
            pass
        if registry is not None:
            registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """Reads the process's files."""
        if not self._boot_time:
            return []
        families: List[Metric] = []
        folder = self._proc / str(self._pid()).strip()
        try:
            # The second field, a name in parentheses, may have spaces.
            fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            start = float(fields[19]) / self._ticks + self._boot_time
            cpu = (float(fields[11]) + float(fields[12])) / self._ticks
            families += [
                self._gauge("virtual_memory_bytes", "Virtual memory size in bytes.", float(fields[20])),
                self._gauge("resident_memory_bytes", "Resident memory size in bytes.", float(fields[21]) * _PAGE_BYTES),
                self._gauge("start_time_seconds", "Start time of the process since unix epoch in seconds.", start),
                CounterMetricFamily(self._prefix + "cpu_seconds", "User and system CPU time spent in seconds.", cpu),
            ]
        except OSError:
            pass
        try:
            limits = (folder / "limits").read_bytes().splitlines()
            most = next((float(line.split()[3]) for line in limits if line.startswith(b"Max open file")), None)
            open_fds = float(len(os.listdir(folder / "fd")))
            families.append(self._gauge("open_fds", "Number of open file descriptors.", open_fds))
            if most is not None:
                families.append(self._gauge("max_fds", "Maximum number of open file descriptors.", most))
        except OSError:
            pass
        return families

    def _gauge(self, name: str, documentation: str, value: float) -> Metric:
        return GaugeMetricFamily(self._prefix + name, documentation, value)


PROCESS_COLLECTOR = ProcessCollector()
"""The one of the default registry. It is not copied to the agent, which exports `persia_process_*`."""
