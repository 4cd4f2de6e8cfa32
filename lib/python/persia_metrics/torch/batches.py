"""How many samples a batch has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DEEPEST = 8


def samples_of(batch: Any, depth: int = 0) -> int:
    """The first dimension of the first tensor or array in the batch: in a tuple, list or mapping, in their order. 0: it has none.

    A tensor without dimensions is one sample.
    """
    if isinstance(batch, (tuple, list)):
        parts: Any = batch
    else:
        shape = getattr(batch, "shape", None)
        if shape is not None:
            return int(shape[0]) if len(shape) > 0 else 1
        parts = batch.values() if isinstance(batch, Mapping) else ()
    if depth == _DEEPEST:
        return 0
    for part in parts:
        samples = samples_of(part, depth + 1)
        if samples > 0:
            return samples
    return 0
