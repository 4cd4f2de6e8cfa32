"""Metrics of training jobs for Prometheus: a training step never waits for them, and they survive the process.

    import persia_metrics

    persia_metrics.init(job_name="dlrm", role="trainer")
    batches = persia_metrics.Counter("batches", "Batches trained.", group="my_app")
    batches.inc()

The values are in shared memory; the job's agent, persia-metrics-agent, reads and exports them. Under the agent's `exec`, or with
PERSIA_JOB_NAME or PERSIA_METRICS_DIR in the environment, `init` is not needed.

Counts survive threads, forks, the interpreter's exit, and SIGKILL. A forked child keeps its parent's metrics, and counts them from 0
in its own segment.

Metrics that cannot be exported raise nothing: one line on stderr says so. A measurement raises TypeError if its argument is not a number,
and ValueError if the metric has label names and no `labels()` were given.

Thread safety: any function and any method, from any thread; not inside signal handlers that C code installed.
"""

from __future__ import annotations

import os
from typing import Mapping, NamedTuple, Optional, Union

from . import _native
from .instruments import Counter, Gauge, Histogram

__version__ = _native.__version__
__all__ = ["Counter", "Gauge", "Histogram", "InitResult", "exporting", "init"]


class InitResult(NamedTuple):
    """The result of init()."""

    exporting: bool
    """Whether an agent can see this process's metrics."""
    detail: str
    """The segment's path, decoded as os.fsdecode does; or why there is none, and what to do."""


def init(
    job_name: Optional[str] = None,
    role: Optional[str] = None,
    replica: Optional[int] = None,
    labels: Optional[Mapping[str, str]] = None,
    metrics_dir: Union[str, "os.PathLike[str]", None] = None,
    enabled: bool = True,
) -> InitResult:
    """Makes this process's metrics visible to the job's agent, which may start before or after.

    The environment overrides the arguments (PERSIA_JOB_NAME, PERSIA_ROLE, REPLICA_INDEX, else RANK, PERSIA_METRICS_DIR,
    PERSIA_METRICS_ENABLED), so that the deployment decides. Earlier measurements are exported too. An exception is a torchelastic
    stream that exists already: call init() before `getStream`. If it fails, one line on stderr says so, and the metrics count
    privately. A second call changes only role, replica and labels. TypeError or ValueError: an argument has a wrong type, or `replica`
    is negative.
    """
    return InitResult(*_native.init(job_name, role, replica, tuple((labels or {}).items()), metrics_dir, enabled))


def exporting() -> bool:
    """Whether an agent can see this process's metrics: init() or the environment enabled them, and neither disabled them."""
    return _native.exporting()
