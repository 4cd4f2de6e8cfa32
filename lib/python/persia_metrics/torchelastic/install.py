"""Exports the metrics and events of torch's own elastic agent and workers, if torch is installed."""

from __future__ import annotations

import importlib
import json
import logging
from types import ModuleType
from typing import Any, Iterable

from .events import api as events
from .metrics import api as metrics

_TORCH = "torch.distributed.elastic"
_log = logging.getLogger("persia_metrics")
# Added to those that torch's module of handlers lists.
_DESTINATIONS = ("null", "console")


class _EventLogHandler(logging.Handler):
    """Records the events that torch writes to its event loggers, one JSON object each."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            fields = json.loads(record.getMessage())
            metadata = fields.pop("metadata", None) or {}
            name = fields.pop("name")
            fields.pop("timestamp", None)
            # The other fields are metadata too: the source; a rendezvous event's run, host, rank and state.
            events.record_event(events.Event(name, metadata={**fields, **metadata}))
        except Exception:
            self.handleError(record)


_event_log_handler = _EventLogHandler()


def install() -> bool:
    """Registers our handlers with `torch.distributed.elastic.metrics` and with the loggers of its events.

    Metrics of groups without a handler of their own then go to streams, and events are counted and their records kept. What torch
    itself does with them does not change. A second call has no effect. If torch is not installed or cannot be loaded, returns False.

    torch logs its events at level INFO and gives their loggers the level of the variable LOGLEVEL. With WARNING or above, no event
    is recorded.
    """
    try:
        torch_metrics = importlib.import_module(f"{_TORCH}.metrics")
        torch_handlers = importlib.import_module(f"{_TORCH}.events.handlers")
    except ImportError:
        return False
    except Exception as error:  # OSError, for example, if a shared library of torch is broken
        _log.warning("torch's own metrics and events are not exported: torch cannot be loaded: %s", error)
        return False
    _register_metrics(torch_metrics)
    for destination in {*_DESTINATIONS, *_known_destinations(torch_handlers)}:
        # torch looks up its loggers by these names when it first needs them, and adds its own handler.
        logger = logging.getLogger(f"torchelastic-events-{destination}")
        if _event_log_handler not in logger.handlers:
            logger.addHandler(_event_log_handler)
    return True


def _register_metrics(torch_metrics: Any) -> None:
    torch_metrics.MetricHandler.register(metrics.ExportingMetricHandler)  # for isinstance checks
    torch_metrics.configure(metrics._exporting_handler)


def _known_destinations(torch_handlers: ModuleType) -> Iterable[str]:
    return getattr(torch_handlers, "_log_handlers", {})
