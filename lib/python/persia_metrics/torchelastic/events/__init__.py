"""torchelastic's events API; see `.api`."""

from __future__ import annotations

import sys

from . import api
from .api import *  # noqa: F403

__all__ = [*api.__all__, "event"]

# torchelastic's document imports this module as `event`, without its package: allow `from ...events import event, record_event`.
event = sys.modules[__name__]
