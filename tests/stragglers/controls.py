"""What a rank is asked to do: a file of doubles that the proof writes and the rank reads at each step.

One double for the delay of each phase in seconds, and one for the kind of hang. Each is written at once.
"""

import enum
import mmap
import os
import time

PHASES = ("data", "forward", "backward", "checkpoint")  # that can be delayed


class Hang(enum.IntEnum):
    NONE = 0
    DEADLOCK_IN_DATA = 1
    LOST_COLLECTIVE = 2


class Controls:
    def __init__(self, file, create=False):
        """`create`: a new file, without delays and hangs."""
        size = 8 * (len(PHASES) + 1)
        handle = os.open(file, os.O_RDWR | (os.O_CREAT | os.O_EXCL if create else 0), 0o600)
        os.ftruncate(handle, size)
        self._values = memoryview(mmap.mmap(handle, size)).cast("d")
        os.close(handle)

    def delay(self, phase):
        return self._values[PHASES.index(phase)]

    def set_delay(self, phase, seconds):
        self._values[PHASES.index(phase)] = seconds

    @property
    def hang(self):
        return self._values[len(PHASES)]

    @hang.setter
    def hang(self, kind):
        self._values[len(PHASES)] = kind

    def wait_for_no_hang(self):
        while self.hang != Hang.NONE:
            time.sleep(0.002)
