"""Metrics of training jobs for Prometheus: the training step never waits for them, and they outlive the process.

    import persia_metrics

    persia_metrics.init(job_name="dlrm", role="trainer")
    batches = persia_metrics.Counter("batches", "Batches trained.", group="my_app")
    batches.inc()

Values are kept in shared memory, from which the job's agent, persia-metrics-agent, reads and exports them. Under the agent's
`exec`, or with PERSIA_JOB_NAME or PERSIA_METRICS_DIR in the environment, `init` is not needed.

What is counted is safe from threads, forks, the end of the interpreter, and SIGKILL. A forked child counts on in a segment of
its own, from 0, with the metrics that its parent had.
"""

from __future__ import annotations

import os
from typing import Mapping, NamedTuple, Optional, Union

from . import _native
from .instruments import Counter, Gauge, Histogram

__version__ = _native.__version__
__all__ = ["Counter", "Gauge", "Histogram", "InitResult", "exporting", "init"]


class InitResult(NamedTuple):
    """What became of it."""

    exporting: bool
    """Whether an agent can see this process's metrics."""
    detail: str
    """The segment's path; or why there is none, and what to do about it. What of a path is no text is as os.fsdecode has it."""


def init(
    job_name: Optional[str] = None,
    role: Optional[str] = None,
    replica: Optional[int] = None,
    labels: Optional[Mapping[str, str]] = None,
    metrics_dir: Union[str, "os.PathLike[str]", None] = None,
    enabled: bool = True,
) -> InitResult:
    """Makes this process's metrics visible to the job's agent, which may come before or after.

    Where the environment says otherwise (PERSIA_JOB_NAME, PERSIA_ROLE, REPLICA_INDEX, else RANK, PERSIA_METRICS_DIR,
    PERSIA_METRICS_ENABLED), the environment wins, so that whoever deploys a program decides. What was counted before this call
    counts, but for a torchelastic handler that is bound already: call it before `getStream`. A failure is one line on stderr and
    changes nothing for the metrics; a second call only renews role, replica and labels.
    """
    return InitResult(*_native.init(job_name, role, replica, tuple((labels or {}).items()), metrics_dir, enabled))


def exporting() -> bool:
    """Whether an agent can see this process's metrics: init() or the environment asked for it, and nobody forbade it."""
    return _native.exporting()
