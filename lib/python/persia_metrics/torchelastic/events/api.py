"""torchelastic's events API: things that happened, and the handlers that they go to, by type.

The functions, classes and signatures are those of `torchelastic.events.api`
(https://pytorch.org/elastic/0.2.1/events.html). Two things are others: whatever handler its type has, an event counts; and where
metrics are on, the handler of types that nobody configured puts the records where the job's agent reads them.
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
    """Something that happened, with what is known about it."""

    name: str
    type: str
    """Decides which handler it goes to. `event_type` is another name for it."""
    metadata: Dict[str, Any]
    timestamp: int
    """When, in milliseconds of Unix time; 0 where nobody said."""

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
        """A JSON object with the keys name, type, metadata and timestamp; what JSON does not know is written as its str()."""
        fields = {"name": self.name, "type": self.type, "metadata": self.metadata, "timestamp": self.timestamp}
        return json.dumps(fields, default=str)

    @staticmethod
    def deserialize(data: Union[str, Event]) -> Event:
        """The event that was serialized; an Event is given back as it is."""
        return data if isinstance(data, Event) else Event(**json.loads(data))


class EventHandler(abc.ABC):
    """Where events go. `record` runs in the caller's thread: what it raises, or how long it takes, meets that caller alone."""

    @abc.abstractmethod
    def record(self, event: Event) -> None:
        """Takes one event."""


class ConsoleEventHandler(EventHandler):
    """Prints each event on stdout, a line of JSON, as `serialize` has it."""

    def record(self, event: Event) -> None:
        print(event.serialize())


class NullEventHandler(EventHandler):
    """Takes events, and does nothing with them."""

    def record(self, event: Event) -> None:
        pass


class ExportingEventHandler(EventHandler):
    """Puts the records of events, with their metadata, where the job's agent reads them. May be part of other handlers.

    A value that neither is a number nor can be written as text costs the record: this is the handler that a job has without
    asking for it, so it must not stop a training step.
    """

    def record(self, event: Event) -> None:
        try:
            _native.keep_event(event.name, event.type, event.metadata, event.timestamp)
        except Exception as error:
            _log.warning("event %r counts, but its record is left out: %s", event.name, error)


_exporting_handler = ExportingEventHandler()
_null_handler = NullEventHandler()
_handlers: Dict[str, EventHandler] = {}


def configure(handler: EventHandler, event_type: str = "") -> None:
    """Makes `handler` that of all events of a type; without one, of type "torchelastic"."""
    _handlers[event_type or _DEFAULT_TYPE] = handler


def _handler_of(event_type: str) -> EventHandler:
    handler = _handlers.get(event_type)
    if handler is None:
        handler = _exporting_handler if _native.exporting() else _null_handler
    return handler


def record_event(event: Event) -> None:
    """Counts an event, and hands it to the handler of its type."""
    # First, since a handler may raise, or never come back.
    _native.count_event(event.name, event.type, event.timestamp)
    _handler_of(event.type).record(event)


def record(event_name: str, event_type: str = _DEFAULT_TYPE, metadata: Optional[Dict[str, Any]] = None) -> None:
    """Makes an event of now, and records it."""
    record_event(Event(event_name, event_type, metadata, int(time.time() * 1000)))
