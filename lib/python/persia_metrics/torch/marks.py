"""The phases that torch's functions are, and the functions that enter them.

A mark is left out inside another one that has its time: the modules of a model inside the model, transforms inside the data loader, a
recomputed forward pass inside the backward pass. Inside a phase that the program has entered itself, only `sync` is entered. Other marks
then count what they count, but the time is the program's phase.
"""

from __future__ import annotations

import functools
from typing import Any, Callable

from .._native import Mark

_DATA, _FORWARD, _BACKWARD, _SYNC, _OPTIMIZER, _CHECKPOINT, _RENDEZVOUS = (1 << bit for bit in range(7))

data = Mark("data", _DATA, _DATA)
forward = Mark("forward", _FORWARD, _DATA | _FORWARD | _BACKWARD | _CHECKPOINT)
evaluation = Mark("eval", _FORWARD, _DATA | _FORWARD | _BACKWARD | _CHECKPOINT)
backward = Mark("backward", _BACKWARD, _DATA | _BACKWARD)
sync = Mark("sync", _SYNC, _SYNC | _RENDEZVOUS, in_programs_phases=True)
optimizer = Mark("optimizer", _OPTIMIZER, _OPTIMIZER)
checkpoint = Mark("checkpoint", _CHECKPOINT, _CHECKPOINT)
rendezvous = Mark("rendezvous", _RENDEZVOUS, _SYNC | _RENDEZVOUS)


def _never() -> bool:
    return False


is_compiling: Callable[[], bool] = _never
"""torch's own function, which its compiler takes for True: the marks vanish from compiled code. torch 1.13 has none."""


def marked(function: Callable[..., Any], mark: Mark) -> Callable[..., Any]:
    """The function in the mark's phase."""
    enter, leave = mark.enter, mark.leave

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if is_compiling() or not enter():
            return function(*args, **kwargs)
        try:
            return function(*args, **kwargs)
        finally:
            leave()

    return call
