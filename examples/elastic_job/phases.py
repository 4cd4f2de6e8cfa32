"""The phases of a step, for the agent: what the rank does, and where it waits for others. A phase can be made longer, to see a straggler."""

import contextlib
import time

import persia_metrics

NAMES = ("data", "forward", "backward", "optimizer", "checkpoint")  # and `sync`, in which a rank waits
_longer = {}


def make_longer(name, seconds):
    """Each time that this process is in the phase by `phase`, once a step, it sleeps so much longer."""
    _longer[name] = seconds


@contextlib.contextmanager
def phase(name):
    with persia_metrics.phase(name):
        if name in _longer:
            time.sleep(_longer[name])
        yield
