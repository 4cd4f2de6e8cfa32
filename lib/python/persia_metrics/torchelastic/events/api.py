"""The functions and classes of persia_metrics.torchelastic.events, whose docstring describes them."""

from __future__ import annotations

import abc
import dataclasses
import enum
import json
import logging
import time
from typing import Any, Dict, Optional, Union

from ... import _native

__all__ = [
    "ConsoleEventHandler",
    "Event",
    "EventHandler",
    "EventMetadataValue",
    "EventSource",
    "ExportingEventHandler",
    "NodeState",
    "NullEventHandler",
    "RdzvEvent",
    "configure",
    "record",
    "record_event",
]

_DEFAULT_TYPE = "torchelastic"
RENDEZVOUS_TYPE = "torchelastic.rendezvous"
EventMetadataValue = Union[str, int, float, bool, None]
"""A value of an event's metadata. Other values are recorded as their str()."""
_log = logging.getLogger("persia_metrics")


class EventSource(str, enum.Enum):
    """Which process an event is about."""

    AGENT = "AGENT"
    WORKER = "WORKER"


def type_of_source(source: Optional[str]) -> str:
    """The type of an event without one: "torchelastic", or "torchelastic.agent" for example, so that sources are counted separately."""
    if source is None:
        return _DEFAULT_TYPE
    return f"{_DEFAULT_TYPE}.{source.value if isinstance(source, EventSource) else source}".lower()


@dataclasses.dataclass(init=False)
class Event:
    """Something that happened, with metadata."""

    name: str
    """What happened."""
    type: str
    """Selects the handler."""
    metadata: Dict[str, Any]
    """Names, and values of EventMetadataValue. Empty if none are given."""
    timestamp: int
    """Unix time in milliseconds; 0 if unknown."""
    source: Optional[EventSource]
    """Of an event in the later releases' form: `Event(name, source, timestamp, metadata)`."""

    def __init__(
        self,
        name: str,
        type: Union[str, EventSource] = _DEFAULT_TYPE,
        metadata: Optional[Dict[str, Any]] = None,
        timestamp: int = 0,
        *,
        event_type: Optional[str] = None,
        source: Optional[EventSource] = None,
    ) -> None:
        if isinstance(type, EventSource):
            source, type = type, _DEFAULT_TYPE
        if isinstance(metadata, int) or isinstance(timestamp, dict):  # the later order
            metadata, timestamp = timestamp or None, metadata or 0
        type = type if event_type is None else event_type
        self.name = name
        self.type = type_of_source(source) if type == _DEFAULT_TYPE else type
        self.metadata = {} if metadata is None else metadata
        self.timestamp = timestamp
        self.source = None if source is None else EventSource.__members__.get(source, source)

    @property
    def event_type(self) -> str:
        """Another name for `type`."""
        return self.type

    @event_type.setter
    def event_type(self, value: str) -> None:
        self.type = value

    def __str__(self) -> str:
        return self.serialize()

    def serialize(self) -> str:
        """A JSON object with the keys name, type (or source, if it has one), metadata and timestamp.

        Names are written as their str(): of two with one str(), the later. So are values that JSON does not have.
        """
        kind = {"type": self.type} if self.source is None else {"source": self.source}
        metadata = {str(name): value for name, value in self.metadata.items()}
        return json.dumps({"name": self.name, **kind, "metadata": metadata, "timestamp": self.timestamp}, default=str)

    @staticmethod
    def deserialize(data: Union[str, Event]) -> Event:
        """The event that was serialized. An Event is returned unchanged. ValueError or TypeError: `data` is no event."""
        return data if isinstance(data, Event) else Event(**json.loads(data))


class NodeState(str, enum.Enum):
    """The state of a node in a rendezvous."""

    INIT = "INIT"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


@dataclasses.dataclass
class RdzvEvent:
    """An action of a node in a rendezvous."""

    name: str
    """The file and the function that recorded it: `dynamic_rendezvous.py:_sync`."""
    run_id: str
    """The job, as torchrun names it."""
    message: str
    """The node's action, in words."""
    hostname: str
    """The node's full name."""
    pid: int
    """The process that recorded it."""
    node_state: NodeState
    """The node's state after it."""
    master_endpoint: str = ""
    """The address of the rendezvous, if it is known."""
    rank: Optional[int] = None
    """The node's rank, if it has one yet."""
    local_id: Optional[int] = None
    """The number of the agent on its node, if the rendezvous has one."""
    error_trace: str = ""
    """The traceback of a failure."""

    def __str__(self) -> str:
        return self.serialize()

    def serialize(self) -> str:
        """A JSON object with the fields as its keys."""
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def deserialize(data: Union[str, RdzvEvent]) -> RdzvEvent:
        """The event that was serialized. A RdzvEvent is returned unchanged. ValueError, TypeError or KeyError: `data` is no event."""
        if isinstance(data, RdzvEvent):
            return data
        fields: Dict[str, Any] = json.loads(data)
        fields["node_state"] = NodeState[fields["node_state"]]
        return RdzvEvent(**fields)


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
    """Counts an event, and passes it to the handler of its type. Raises what the handler raises."""
    # Counted first, because a handler may raise or hang.
    _native.count_event(event.name, event.type, event.timestamp)
    _handler_of(event.type).record(event)


def record(
    event_name: Union[str, Event, None] = None,
    event_type: str = _DEFAULT_TYPE,
    metadata: Optional[Dict[str, Any]] = None,
    *,
    event: Optional[Event] = None,
    destination: Optional[str] = None,
) -> None:
    """Records a new event with the current time: `record(event_name, event_type, metadata)`.

    Or, as the later releases do, passes an event to a destination's logger too: `record(event, destination="null")`. KeyError: there is
    no such destination.
    """
    given: Any = event_name if event is None else event
    if not hasattr(given, "serialize"):
        return record_event(Event(given, event_type, metadata, int(time.time() * 1000)))
    event = given if isinstance(given, Event) else Event.deserialize(given.serialize())  # of torch's own class
    if destination is None:
        destination = "null" if event_type == _DEFAULT_TYPE else event_type
    record_event(event)
    from . import _get_or_create_logger  # its module imports this one

    _get_or_create_logger(destination).info(event.serialize())
