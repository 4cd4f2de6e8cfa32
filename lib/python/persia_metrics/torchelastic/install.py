"""Exports the metrics and events of torch's own elastic agent and workers, if torch is installed."""

from __future__ import annotations

import functools
import importlib
import logging
import os
from types import ModuleType
from typing import Any

import persia_metrics

from .events.handlers import ExportingLogHandler
from .metrics import api as metrics

_TORCH = "torch.distributed.elastic"
_log = logging.getLogger("persia_metrics")
# Added to those that torch's module of handlers lists.
_DESTINATIONS = ("null", "console", "dynamic_rendezvous")


class TorchMetricHandler(metrics.ExportingMetricHandler):
    """Exports torch's metrics; those of a worker group have the role of its ranks."""

    def emit(self, metric_data: metrics.MetricData) -> None:
        _, group, name, value = metric_data
        self.add(group, _with_role_of_ranks(name) if group == "torchelastic" else name, value)


_metric_handler = TorchMetricHandler()
_event_log_handler = ExportingLogHandler()


def install() -> bool:
    """Registers our handlers with `torch.distributed.elastic.metrics` and with the loggers of its events.

    Metrics of groups without their own handler then go to streams, and events are counted and their records kept. This does not
    change torch's own handlers. A second call has no effect. If torch is not installed or cannot be loaded, returns False.

    For a launcher of your own, which also calls `persia_metrics.init(role="launcher")`. In torchrun, the start-up hook does both.
    """
    try:
        torch_metrics = importlib.import_module(f"{_TORCH}.metrics")
        torch_handlers = importlib.import_module(f"{_TORCH}.events.handlers")
    except ImportError:
        return False
    except Exception as error:  # OSError, for example, if a shared library of torch is broken
        _log.warning("torch's own metrics and events are not exported: torch cannot be loaded: %s", error)
        return False
    export_metrics(torch_metrics)
    export_events(torch_handlers)
    return True


def export_metrics(torch_metrics: Any) -> None:
    """Makes ours the default handler of torch.distributed.elastic.metrics."""
    torch_metrics.MetricHandler.register(metrics.ExportingMetricHandler)  # for isinstance checks
    torch_metrics.configure(_metric_handler)


def export_events(torch_handlers: ModuleType) -> None:
    """Adds ours to the handlers of torch's event loggers, by the module torch.distributed.elastic.events.handlers.

    torch records no rendezvous event while its handler for them is the null handler: there, ours replaces it. torch logs its events
    at level INFO and gives their loggers the level of the variable LOGLEVEL. With WARNING or above, no event is recorded.
    """
    handlers = getattr(torch_handlers, "_log_handlers", {})
    if isinstance(handlers.get("dynamic_rendezvous"), logging.NullHandler):
        handlers["dynamic_rendezvous"] = _event_log_handler
    for destination in {*_DESTINATIONS, *handlers}:
        # torch looks up its loggers by these names when it first needs them, and adds its own handler. A second add has no effect.
        logging.getLogger(f"torchelastic-events-{destination}").addHandler(_event_log_handler)


def name_launcher(torch_launcher: Any) -> None:
    """Gives a process that starts an elastic agent by torch.distributed.launcher.api the role "launcher", different from its ranks'."""
    launch = torch_launcher.launch_agent

    @functools.wraps(launch)
    def launch_agent(*args: Any, **kwargs: Any) -> Any:
        _become_launcher()
        return launch(*args, **kwargs)

    torch_launcher.launch_agent = launch_agent


def _become_launcher() -> None:
    if not persia_metrics.exporting():
        return
    role_of_ranks = os.environ.pop("PERSIA_ROLE", None)  # the ranks inherit it; it would override ours
    try:
        persia_metrics.init(role="launcher")
    finally:
        if role_of_ranks is not None:
            os.environ["PERSIA_ROLE"] = role_of_ranks


def _with_role_of_ranks(name: str) -> str:
    """The name of a metric of a worker group, `workers.<role>.<metric>`, with the role by which the library names its ranks."""
    prefix, _, rest = name.partition(".")
    role, _, metric = rest.rpartition(".")
    if prefix not in ("workers", "worker_group") or not role:
        return name
    # "default" is torchrun's role without --role, "worker" the library's.
    return f"{prefix}.{os.environ.get('PERSIA_ROLE') or ('worker' if role == 'default' else role)}.{metric}"
