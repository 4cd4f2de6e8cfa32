"""Has the metrics and events of torch's own elastic agent and workers exported, where torch is there."""

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
# Beside those that torch's module of handlers lists.
_DESTINATIONS = ("null", "console")


class _EventLogHandler(logging.Handler):
    """Takes what torch writes into a logger of its events, a JSON object each."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            fields = json.loads(record.getMessage())
            metadata = fields.pop("metadata", None) or {}
            name = fields.pop("name")
            fields.pop("timestamp", None)
            # What is left describes the event, too: its source; a rendezvous event's run, host, rank and state.
            events.record_event(events.Event(name, metadata={**fields, **metadata}))
        except Exception:
            self.handleError(record)  # logging's own: one report on stderr, or none with logging.raiseExceptions off


_event_log_handler = _EventLogHandler()


def install() -> bool:
    """Registers our handlers with `torch.distributed.elastic.metrics` and with the loggers of its events.

    Metrics of groups that have no handler of their own then go to streams, and events count, with their records, beside what
    torch does with them. Calling it again changes nothing. Gives False, and does nothing, where there is no torch, or one that
    cannot be loaded.

    torch writes its events into its loggers at level INFO, and gives these the level of the variable LOGLEVEL: where that is
    WARNING or above, none of its events comes here.
    """
    try:
        torch_metrics = importlib.import_module(f"{_TORCH}.metrics")
        torch_handlers = importlib.import_module(f"{_TORCH}.events.handlers")
    except ImportError:
        return False
    except Exception as error:  # an OSError where a shared library of torch is broken
        _log.warning("torch's own metrics and events are not exported, since torch cannot be loaded: %s", error)
        return False
    _register_metrics(torch_metrics)
    for destination in {*_DESTINATIONS, *_known_destinations(torch_handlers)}:
        # torch gets its loggers by these names when it first needs them, and adds its handler to ours.
        logger = logging.getLogger(f"torchelastic-events-{destination}")
        if _event_log_handler not in logger.handlers:
            logger.addHandler(_event_log_handler)
    return True


def _register_metrics(torch_metrics: Any) -> None:
    torch_metrics.MetricHandler.register(metrics.ExportingMetricHandler)  # for those who ask isinstance
    torch_metrics.configure(metrics._exporting_handler)


def _known_destinations(torch_handlers: ModuleType) -> Iterable[str]:
    return getattr(torch_handlers, "_log_handlers", {})
