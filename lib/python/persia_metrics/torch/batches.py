"""How many samples a batch has."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, List

_DEEPEST = 8
# A batch may have millions of Python objects, and each training step waits while they are looked at.
_MOST_OF_A_LIST = 8
_MOST = 100


def samples_of(batch: Any) -> int:
    """The first dimension of the first tensor or array in the batch: in a tuple, list or mapping, in their order. 0: it has none.

    A tensor without dimensions is one sample. Of a list the first 8 parts are looked at, and of a batch 100 parts.
    """
    return _samples_of(batch, [_MOST], 0)


def _samples_of(batch: Any, left: List[int], depth: int) -> int:
    """`left`: how many more parts are looked at."""
    if isinstance(batch, (tuple, list)):
        parts: Any = batch
    else:
        shape = getattr(batch, "shape", None)
        if shape is not None:
            return int(shape[0]) if len(shape) > 0 else 1
        parts = batch.values() if isinstance(batch, Mapping) else ()
    if depth == _DEEPEST:
        return 0
    for part in islice(parts, _MOST_OF_A_LIST if isinstance(batch, list) else None):
        if left[0] == 0:
            return 0
        left[0] -= 1
        samples = _samples_of(part, left, depth + 1)
        if samples > 0:
            return samples
    return 0
