"""torchelastic's metrics API: streams of values by group, and a handler for each group.

The functions, classes and signatures are those of `torchelastic.metrics.api`
(https://pytorch.org/docs/stable/elastic/metrics.html), with one difference: if metrics are enabled, the default handler of a group
exports the values. If they are disabled it is the null handler, as in torchelastic.

Thread safety: any function, from any thread. A handler runs in the threads that add values, several at once.
"""

from __future__ import annotations

from typing import Optional

from . import api
from .api import *  # noqa: F403
from .api import MetricsConfig

__all__ = [*api.__all__, "initialize_metrics"]


def initialize_metrics(cfg: Optional[MetricsConfig] = None) -> None:
    """Does nothing, as in torchelastic."""
