"""The rank of the process in torch.distributed. If no launcher gives it, as with torch.multiprocessing.spawn, the process group alone knows it."""

from __future__ import annotations

import functools
import logging
import os
import sys
from typing import Any

from .. import _native

_log = logging.getLogger("persia_metrics")


def take_rank(c10d: Any) -> None:
    """Takes the rank of the present process group, and of each later one, from torch.distributed.distributed_c10d."""
    # The first one is called by the second one, which the program may have imported by name. Neither: Python is executing the module,
    # and this is called again.
    name = next((name for name in ("_update_default_pg", "init_process_group") if hasattr(c10d, name)), None)
    if name is None:
        return
    function = getattr(c10d, name)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        _take(c10d)
        return result

    for module in (c10d, sys.modules.get("torch.distributed")):
        if getattr(module, name, None) is function:
            setattr(module, name, call)
    _take(c10d)


def _take(c10d: Any) -> None:
    try:
        # A group of one does not distinguish the process from others of the job.
        if c10d.is_initialized() and c10d.get_world_size() > 1:
            rank = c10d.get_rank()
            _native.set_process_group_rank(rank)
            # For what this process starts, such as spawned data loaders. Forked ones have it already.
            os.environ["PERSIA_METRICS_RANK_OF_PARENT"] = str(rank)
    except Exception as error:
        _log.warning("the rank in torch.distributed is not known: %s: %s", type(error).__name__, error)
