"""Memory cgroups that a test makes below that of its own process, of either version of cgroups."""

import os
import signal
import uuid
from pathlib import Path

from servers import wait_until

_ROOT = Path("/sys/fs/cgroup")


def _own():
    """The directory of this process's memory cgroup, and its version; None: there is none that can be seen."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return _ROOT / "memory" / path.lstrip("/"), 1
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        if line.startswith("0::"):
            directory = _ROOT / line[3:].lstrip("/")
            if (directory / "cgroup.procs").exists():
                return directory, 2
    return None


class MemoryCgroup:
    """A cgroup with a limit. `join` is a shell command by which the shell and what it starts belong to it."""

    def __init__(self, limit_bytes):
        own = _own()
        if own is None:
            raise OSError("no memory cgroup is mounted")
        parent, version = own
        # Of version 2, only a cgroup without processes gives its children a controller.
        while version == 2 and "memory" not in (parent / "cgroup.subtree_control").read_text().split() and parent != _ROOT:
            parent = parent.parent
        self.path = parent / f"persia-test-{uuid.uuid4().hex[:12]}"
        self.path.mkdir()
        try:
            (self.path / ("memory.limit_in_bytes" if version == 1 else "memory.max")).write_text(str(limit_bytes))
            swap = self.path / ("memory.memsw.limit_in_bytes" if version == 1 else "memory.swap.max")
            if swap.exists():
                swap.write_text(str(limit_bytes) if version == 1 else "0")
        except OSError:
            self.path.rmdir()
            raise
        self.join = f"echo $$ > {self.path}/cgroup.procs"

    def remove(self):
        """Ends its processes, if a test failed, and removes it."""
        if not self.path.exists():
            return
        for pid in (self.path / "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        wait_until(lambda: not (self.path / "cgroup.procs").read_text(), "the cgroup to be empty")
        self.path.rmdir()
