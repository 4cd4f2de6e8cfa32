"""torchelastic's metrics API; see `.api`."""

from __future__ import annotations

from typing import Optional

from . import api
from .api import *  # noqa: F403
from .api import MetricsConfig

__all__ = [*api.__all__, "initialize_metrics"]


def initialize_metrics(cfg: Optional[MetricsConfig] = None) -> None:
    """Does nothing, as in torchelastic."""
