"""torchelastic's events API; see `.api`."""

from __future__ import annotations

import sys

from .api import (
    ConsoleEventHandler,
    Event,
    EventHandler,
    ExportingEventHandler,
    NullEventHandler,
    configure,
    record,
    record_event,
)

__all__ = [
    "ConsoleEventHandler",
    "Event",
    "EventHandler",
    "ExportingEventHandler",
    "NullEventHandler",
    "configure",
    "event",
    "record",
    "record_event",
]

# torchelastic's document calls this module `event` and does not say from where: `from ...events import event, record_event`.
event = sys.modules[__name__]
