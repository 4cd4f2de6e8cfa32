"""Metrics of training jobs for Prometheus: a training step never waits for them, and they survive the process.

    import persia_metrics

    persia_metrics.init(job_name="dlrm", role="trainer")
    batches = persia_metrics.Counter("my_app", "batches", "Batches trained.")
    batches.inc()

The values are in shared memory; the job's agent, persia-metrics-agent, reads and exports them. Under the agent's `exec`, or with
PERSIA_JOB_NAME or PERSIA_METRICS_DIR in the environment, `init` is not needed.

Counts survive threads, forks, the interpreter's exit, and SIGKILL. A forked child keeps its parent's metrics, and counts them from 0
in its own segment.

Metrics that cannot be exported raise nothing: one line on stderr says so. A measurement raises TypeError if its argument is not a number,
and ValueError if the metric has label names and no `labels()` were given.

`persia_metrics.catalog` has the Persia tables, `persia_metrics.events` events, and `persia_metrics.testing` a scope for unit tests. Programs
that are written for prometheus_client import `persia_metrics.prometheus_client` instead.

Thread safety: any function and any method, from any thread; not inside signal handlers that C code installed.
"""

from __future__ import annotations

import atexit
import importlib
import os
import sys
from typing import TYPE_CHECKING, Any, Callable, List, Mapping, NamedTuple, Optional, Sequence, Union

import persia_metrics_startup

try:
    from . import _native
except ImportError:
    import sysconfig

    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise ImportError(
            "persia_metrics does not support Python without the global lock; use the ordinary build of this version"
        ) from None
    raise
from .instruments import Counter, Enum, Gauge, Histogram, Info, Stream, TimeCost
from .phases import Phase, phase, set_step
from .progress import count_samples, count_steps, count_tokens, set_total_steps
from . import uncaught
from .reading import HistogramValue, Series, Snapshot, StreamValue, TimeCostValue, read_value, snapshot

# Loaded at their first use.
_MODULES = ("benchmarkai", "bridge", "catalog", "events", "prometheus_client", "testing", "torch", "torchelastic")
if TYPE_CHECKING:
    from . import benchmarkai as benchmarkai, bridge as bridge, catalog as catalog, events as events
    from . import prometheus_client as prometheus_client, testing as testing, torch as torch, torchelastic as torchelastic

    _modules = (benchmarkai, bridge, catalog, events, prometheus_client, testing, torch, torchelastic)
else:

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__version__ = _native.__version__
__all__ = [
    "DEFAULT_SECONDS_BOUNDS",
    "Counter",
    "Enum",
    "Gauge",
    "Histogram",
    "HistogramValue",
    "Info",
    "InitResult",
    "Phase",
    "Series",
    "Snapshot",
    "Stream",
    "StreamValue",
    "TimeCost",
    "TimeCostValue",
    "count_samples",
    "count_steps",
    "count_tokens",
    "exporting",
    "init",
    "phase",
    "read_value",
    "set_callback_period",
    "set_step",
    "set_total_steps",
    "snapshot",
]

DEFAULT_SECONDS_BOUNDS: Sequence[float] = _native.DEFAULT_BOUNDS
"""The default bounds of histograms and time costs, those of the C++ and C library: 0.1 ms to 10 s."""


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
    PERSIA_METRICS_ENABLED), so that the deployment decides. docs/ranks.md lists all sources of the replica. Earlier measurements are
    exported too. An exception is a torchelastic stream that exists already: call init() before `getStream`. If it fails, one line on
    stderr says so, and the metrics count privately. A second call changes only role, replica and labels. TypeError or ValueError: an
    argument has a wrong type, or `replica` is negative.
    """
    result = InitResult(*_native.init(job_name, role, replica, tuple((labels or {}).items()), metrics_dir, enabled))
    _write_stacks(result)
    return result


# Called before a child of multiprocessing ends by os._exit.
_at_exit: List[Callable[[], None]] = []

# For the agent, which reports why the process died.
uncaught.install()


def _write_stacks(result: InitResult) -> None:
    if result.exporting and os.environ.get("PERSIA_METRICS_STACKS") == "1":
        from . import stacks  # only here: its modules take time to import

        stacks.install(result.detail)


if os.environ.get("PERSIA_METRICS_STACKS") == "1" and _native.exporting():
    _write_stacks(InitResult(*_native.init(None, None, None, (), None, True)))

# In a program whose ranks torch starts, only torch may know which one this process is.
persia_metrics_startup.register(persia_metrics_startup.RANK)

# The thread that calls functions of gauges must not wait for the lock of an interpreter that ends.
atexit.register(_native.end_functions)


# A child that multiprocessing has forked ends by os._exit, which leaves no mark of a normal exit in the segment. Its finalizers run
# before that, while the exception of its function, if there is one, is being handled.
def _mark_exit() -> None:
    error = sys.exc_info()[1]
    for call in _at_exit:
        call()
    code: object = 0 if error is None else 1
    if isinstance(error, SystemExit):
        code = 0 if error.code is None else error.code
    _native.mark_exit(code if isinstance(code, int) else 1)


def _add_finalizer(_: object = None) -> None:
    sys.modules["multiprocessing.util"].Finalize(None, _mark_exit, exitpriority=-1_000_000)


def _watch_exit_of_fork() -> None:
    # multiprocessing is not imported for this. It clears the finalizers of a child and then calls the hooks, except in a child of
    # a fork server.
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        _add_finalizer()
        util.register_after_fork(_mark_exit, _add_finalizer)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_watch_exit_of_fork)
if "multiprocessing.util" in sys.modules:
    _process = sys.modules["multiprocessing.process"]
    # Imported by such a child, or before it has become one: then it is about to import the main module of its parent.
    if _process.parent_process() is not None or getattr(_process.current_process(), "_inheriting", False):
        _watch_exit_of_fork()


def exporting() -> bool:
    """Whether an agent can see this process's metrics: init() or the environment enabled them, and neither disabled them."""
    return _native.exporting()


def set_callback_period(seconds: float) -> None:
    """Sets the time between two calls of each function of a gauge or counter: 10 ms to a day, by default 5 seconds.

    ValueError: it is not positive.
    """
    _native.set_callback_period(seconds)
