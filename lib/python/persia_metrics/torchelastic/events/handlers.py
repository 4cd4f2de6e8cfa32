"""The destinations of events in torchelastic's later releases: handlers of Python's logging."""

from __future__ import annotations

import json
import logging
from typing import Dict

from . import api


class ExportingLogHandler(logging.Handler):
    """Records the events that are written to a logger, one JSON object each."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            fields = json.loads(record.getMessage())
            name, metadata, timestamp = fields.pop("name"), fields.pop("metadata", None), fields.pop("timestamp", None)
            event_type = api.RENDEZVOUS_TYPE if "node_state" in fields else api.type_of_source(fields.get("source"))
            # The other fields are metadata too: the source; a rendezvous event's run, host, rank and state.
            api.record_event(api.Event(name, event_type, {**fields, **(metadata or {})}, timestamp or 0))
        except Exception:
            self.handleError(record)


_log_handlers: Dict[str, logging.Handler] = {
    "console": logging.StreamHandler(),
    "dynamic_rendezvous": ExportingLogHandler(),
    "null": logging.NullHandler(),
}


def get_logging_handler(destination: str = "null") -> logging.Handler:
    """The handler of a destination. KeyError: there is none of this name."""
    return _log_handlers[destination]
