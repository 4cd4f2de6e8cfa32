"""torchelastic's events API: events, and a handler for each type of them.

The functions, classes and signatures are those of `torchelastic.events.api` (https://pytorch.org/elastic/0.2.1/events.html), with two
differences. Every event is counted, whichever handler its type has. If metrics are enabled, a type without a configured handler gets
one that writes the records where the job's agent reads them.
"""

from __future__ import annotations

import abc
import dataclasses
import json
import logging
import time
from typing import Any, Dict, Optional, Union

from ... import _native

__all__ = [
    "ConsoleEventHandler",
    "Event",
    "EventHandler",
    "ExportingEventHandler",
    "NullEventHandler",
    "configure",
    "record",
    "record_event",
]

_DEFAULT_TYPE = "torchelastic"
_log = logging.getLogger("persia_metrics")


@dataclasses.dataclass(init=False)
class Event:
    """Something that happened, with metadata."""

    name: str
    type: str
    """Selects the handler. `event_type` is another name for it."""
    metadata: Dict[str, Any]
    timestamp: int
    """Unix time in milliseconds; 0 if unknown."""

    def __init__(
        self,
        name: str,
        type: str = _DEFAULT_TYPE,
        metadata: Optional[Dict[str, Any]] = None,
        timestamp: int = 0,
        *,
        event_type: Optional[str] = None,
    ) -> None:
        self.name = name
        self.type = type if event_type is None else event_type
        self.metadata = {} if metadata is None else metadata
        self.timestamp = timestamp

    @property
    def event_type(self) -> str:
        return self.type

    @event_type.setter
    def event_type(self, value: str) -> None:
        self.type = value

    def __str__(self) -> str:
        return self.serialize()

    def serialize(self) -> str:
        """A JSON object with the keys name, type, metadata and timestamp. Values that JSON does not have are written as their str()."""
        fields = {"name": self.name, "type": self.type, "metadata": self.metadata, "timestamp": self.timestamp}
        return json.dumps(fields, default=str)

    @staticmethod
    def deserialize(data: Union[str, Event]) -> Event:
        """The event that was serialized. An Event is returned unchanged."""
        return data if isinstance(data, Event) else Event(**json.loads(data))


class EventHandler(abc.ABC):
    """Receives events. `record` runs in the caller's thread: its exceptions and its duration affect that caller only."""

    @abc.abstractmethod
    def record(self, event: Event) -> None:
        """Handles one event."""


class ConsoleEventHandler(EventHandler):
    """Prints each event on stdout, as the line of JSON that `serialize` returns."""

    def record(self, event: Event) -> None:
        print(event.serialize())


class NullEventHandler(EventHandler):
    """Ignores events."""

    def record(self, event: Event) -> None:
        pass


class ExportingEventHandler(EventHandler):
    """Writes the records of events, with their metadata, where the job's agent reads them. Other handlers may call it.

    If a value is neither a number nor convertible to text, the record is dropped: the default handler must not stop a training step.
    """

    def record(self, event: Event) -> None:
        try:
            _native.keep_event(event.name, event.type, event.metadata, event.timestamp)
        except Exception as error:
            _log.warning("event %r is counted, but its record is dropped: %s", event.name, error)


_exporting_handler = ExportingEventHandler()
_null_handler = NullEventHandler()
_handlers: Dict[str, EventHandler] = {}


def configure(handler: EventHandler, event_type: str = "") -> None:
    """Sets the handler of all events of a type, by default of the type "torchelastic"."""
    _handlers[event_type or _DEFAULT_TYPE] = handler


def _handler_of(event_type: str) -> EventHandler:
    handler = _handlers.get(event_type)
    if handler is None:
        handler = _exporting_handler if _native.exporting() else _null_handler
    return handler


def record_event(event: Event) -> None:
    """Counts an event, and passes it to the handler of its type."""
    # Counted first, because a handler may raise or hang.
    _native.count_event(event.name, event.type, event.timestamp)
    _handler_of(event.type).record(event)


def record(event_name: str, event_type: str = _DEFAULT_TYPE, metadata: Optional[Dict[str, Any]] = None) -> None:
    """Records a new event with the current time."""
    record_event(Event(event_name, event_type, metadata, int(time.time() * 1000)))
