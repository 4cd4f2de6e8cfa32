"""What the process does now, and how long it has done what."""

from __future__ import annotations

from typing import Any, Tuple

from . import _native
from .timing import ContextDecorator

set_step = _native.set_step


class Phase(ContextDecorator, _native.Phase):
    """A phase of training: a context manager, and a decorator of functions, coroutines and generators of both kinds.

    From the first phase that the process enters, each moment belongs to one phase: the one that was entered last, or `other` outside of all.
    A phase does not run while one is entered inside it, nor while a generator that it decorates waits to be resumed. That of a coroutine
    includes what it awaits. A process has the phases of one thread; what other threads enter meanwhile is left out. All phases of one name
    are the same. Pickled, or copied with the object that has it, it is the phase of its name.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self._name,)

    def _pause(self) -> None:
        self.__exit__()

    def _resume(self) -> None:
        self.__enter__()


def phase(name: str) -> Phase:
    """The phase `name`: usually init, rendezvous, data, forward, backward, sync, optimizer, checkpoint or eval. `sync` is the wait for others."""
    return Phase(name)
