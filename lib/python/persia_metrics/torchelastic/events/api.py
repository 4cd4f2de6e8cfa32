"""torchelastic's events API: things that happened, and the handlers that they go to, by type.

The functions, classes and signatures are those of `torchelastic.events.api`
(https://pytorch.org/elastic/0.2.1/events.html). Whatever handler its type has, an event counts, and its record goes to the job's
agent, where metrics are on.
"""

from __future__ import annotations

import abc
import dataclasses
import json
import logging
import threading
import time
from typing import Any, Dict, Optional

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


class EventHandler(abc.ABC):
    """Where events go. `record` runs in the caller's thread: what it raises, or how long it takes, meets that caller alone."""

    @abc.abstractmethod
    def record(self, event: Event) -> None:
        """Takes one event."""


class ConsoleEventHandler(EventHandler):
    """Prints each event on stdout, as `[timestamp][type]: name metadata`, the metadata in JSON."""

    def record(self, event: Event) -> None:
        print(f"[{event.timestamp}][{event.type}]: {event.name} {json.dumps(event.metadata, default=str)}")


class NullEventHandler(EventHandler):
    """Takes events, and does nothing with them."""

    def record(self, event: Event) -> None:
        pass


class ExportingEventHandler(EventHandler):
    """Counts events and puts their records where the agent reads them.

    `record_event` does that for each event by itself; so this adds nothing there, and may be part of other handlers.
    """

    def record(self, event: Event) -> None:
        if getattr(_under_way, "event", None) is not event:
            _export(event)


_under_way = threading.local()  # .event: the one that this thread's record_event has exported
_exporting_handler = ExportingEventHandler()
_null_handler = NullEventHandler()
_default_handler: Optional[EventHandler] = None  # None: ours where metrics are on
_handlers: Dict[str, EventHandler] = {}


def _export(event: Event) -> None:
    try:
        _native.record_event(event.name, event.type, event.metadata)
    except Exception as error:  # of some value's __str__, say: what we do unasked must not stop a training step
        _log.warning("event %r counts, but its metadata are left out: %s", event.name, error)
        _native.record_event(event.name, event.type, None)


def configure(handler: EventHandler, event_type: str = "") -> None:
    """Makes `handler` that of all events of a type; without one, of type "torchelastic" and of types that have none."""
    global _default_handler
    if event_type:
        _handlers[event_type] = handler
    else:
        _default_handler = _handlers[_DEFAULT_TYPE] = handler


def _handler_of(event_type: str) -> EventHandler:
    handler = _handlers.get(event_type, _default_handler)
    if handler is None:
        handler = _exporting_handler if _native.exporting() else _null_handler
    return handler


def record_event(event: Event) -> None:
    """Counts an event, and hands it to the handler of its type."""
    _export(event)  # first, since a handler may raise, or never come back
    handler = _handler_of(event.type)
    if handler is _exporting_handler:
        return
    outer = getattr(_under_way, "event", None)
    _under_way.event = event
    try:
        handler.record(event)
    finally:
        _under_way.event = outer


def record(event_name: str, event_type: str = _DEFAULT_TYPE, metadata: Optional[Dict[str, Any]] = None) -> None:
    """Makes an event of now, and records it."""
    record_event(Event(event_name, event_type, metadata, int(time.time() * 1000)))
