"""torchelastic's events API: events, and a handler for each type of them.

The functions, classes and signatures are those of `torchelastic.events.api` (https://pytorch.org/elastic/0.2.1/events.html), and
those of its later releases, in which an event has a source and goes to a destination. There are two differences. Every event is
counted, with any handler or destination. If metrics are enabled, a type without a configured handler gets one that writes
the records where the job's agent reads them.

Thread safety: any function, from any thread. A handler runs in the threads that record events, several at once.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import traceback
from typing import Dict, Optional

from . import api
from .api import *  # noqa: F403
from .api import NodeState, RdzvEvent
from .handlers import get_logging_handler

__all__ = [*api.__all__, "construct_and_record_rdzv_event", "event", "get_logging_handler", "record_rdzv_event"]

# torchelastic's document imports this module as `event`, without its package: allow `from ...events import event, record_event`.
event = sys.modules[__name__]

_loggers: Dict[str, logging.Logger] = {}


def _get_or_create_logger(destination: str = "null") -> logging.Logger:
    """The logger of a destination. Its name is not the one of torch's, whose events are exported by `install`."""
    if destination not in _loggers:
        handler = get_logging_handler(destination)
        logger = logging.getLogger(f"persia-metrics-events-{destination}")
        logger.setLevel(logging.INFO)
        logger.propagate = False
        logger.addHandler(handler)
        _loggers[destination] = logger
    return _loggers[destination]


def record_rdzv_event(event: RdzvEvent) -> None:
    """Passes an event of a rendezvous to the destination "dynamic_rendezvous", which counts it and keeps its record."""
    _get_or_create_logger("dynamic_rendezvous").info(event.serialize())


def construct_and_record_rdzv_event(
    run_id: str,
    message: str,
    node_state: NodeState,
    name: str = "",
    hostname: str = "",
    pid: Optional[int] = None,
    master_endpoint: str = "",
    local_id: Optional[int] = None,
    rank: Optional[int] = None,
) -> None:
    """Records a step of the calling function in a rendezvous, as the event `<file>:<function>`; a failure with its traceback."""
    if isinstance(get_logging_handler("dynamic_rendezvous"), logging.NullHandler):
        return
    caller = sys._getframe(1).f_code
    record_rdzv_event(
        RdzvEvent(
            name=f"{os.path.basename(caller.co_filename)}:{name or caller.co_name}",
            run_id=run_id,
            message=message,
            hostname=hostname or socket.getfqdn(),
            pid=pid or os.getpid(),
            node_state=node_state,
            master_endpoint=master_endpoint,
            rank=rank,
            local_id=local_id,
            error_trace=traceback.format_exc() if node_state == NodeState.FAILED else "",
        )
    )
