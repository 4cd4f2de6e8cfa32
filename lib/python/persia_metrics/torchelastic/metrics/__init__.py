"""torchelastic's metrics API; see `.api`. `import torchelastic.metrics as metrics` is the one line of a job that changes."""

from __future__ import annotations

from typing import Optional

from . import api
from .api import *  # noqa: F403 - what it has in __all__
from .api import MetricsConfig

__all__ = [*api.__all__, "initialize_metrics"]


def initialize_metrics(cfg: Optional[MetricsConfig] = None) -> None:
    """Does nothing, as torchelastic's: there is nothing to set up."""
