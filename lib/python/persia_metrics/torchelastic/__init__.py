"""Exports torchelastic's metrics and events: `metrics`, `events`, and `install()` for those of torch itself."""

from __future__ import annotations

from . import event, events, metrics
from .install import install

__all__ = ["event", "events", "install", "metrics"]
