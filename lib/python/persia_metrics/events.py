"""Events: records that something happened, with metadata. `events.record("my_app", "checkpoint", {"bytes": 1024})`.

For each (type, name) the library counts the events and keeps the time of the last one and the intervals between them. In addition, the
handler of the event's type receives the event. If metrics are enabled, the default one writes the event with its metadata where the job's
agent reads it. The handlers are those of `persia_metrics.torchelastic.events`, which has torchelastic's own order of arguments and its
other functions.

Thread safety: any function, from any thread. A handler runs in the threads that record events, several at once.
"""

from __future__ import annotations

import time
from typing import Any, Mapping, Optional

from . import _native
from .torchelastic.events.api import (
    ConsoleEventHandler,
    Event,
    EventHandler,
    ExportingEventHandler,
    NullEventHandler,
    record_event,
)
from .torchelastic.events.api import configure as _configure

__all__ = [
    "ConsoleEventHandler",
    "Event",
    "EventHandler",
    "ExportingEventHandler",
    "NullEventHandler",
    "configure",
    "count",
    "record",
    "record_event",
]


def record(type: str, name: str, metadata: Optional[Mapping[str, Any]] = None) -> None:
    """Records that `name` happened now. The type is an event's group; a record has space for about 900 bytes of metadata, and the longest
    texts of more are shortened.

    Values are numbers, str, bool or None; others are recorded as their str(), as are names: of two with one str(), the later is kept.
    Raises what the type's handler raises.
    """
    record_event(Event(name, type, dict(metadata or {}), int(time.time() * 1000)))


def configure(type: str, handler: EventHandler) -> None:
    """Sets the handler of all events of a type."""
    _configure(handler, type)


def count(type: str, name: str) -> int:
    """How often this process has recorded an event."""
    return _native.event_count(type, name)
