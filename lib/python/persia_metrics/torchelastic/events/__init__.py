"""torchelastic's events API; see `.api`."""

from __future__ import annotations

import sys

from . import api
from .api import *  # noqa: F403 - what it has in __all__

__all__ = [*api.__all__, "event"]

# torchelastic's document calls this module `event` and does not say from where: `from ...events import event, record_event`.
event = sys.modules[__name__]
