"""Memory cgroups that a test makes below that of its own process, of either version of cgroups. They need root."""

import contextlib
import re
import subprocess
import sys
import uuid
from pathlib import Path

from servers import wait_until


def _parents():
    """Directories of cgroups below which a cgroup with a memory limit may be possible, from this process's own one upwards."""
    lines = (line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines())
    own = {controller: path for _, controllers, path in lines for controller in controllers.split(",")}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        found = re.search(r"^\S+ \S+ \S+ \S+ (\S+) .* - (cgroup2?) \S+ (\S+)", line)
        if not found:
            continue
        point, kind, options = found.groups()
        if kind == "cgroup" and "memory" not in options.split(","):
            continue
        path = Path(point + own.get("memory" if kind == "cgroup" else "", "/"))
        while path != Path(point):
            yield path
            path = path.parent
        yield path


class MemoryCgroup:
    """A cgroup with a memory limit, without processes. `join` is a shell command by which the shell and what it starts belong to it."""

    def __init__(self, limit):
        failures = []
        for parent in _parents():
            self.path = parent / f"persia-test-{uuid.uuid4().hex[:12]}"
            try:
                self.path.mkdir()
                try:
                    self._set_limit(limit)
                except OSError:
                    self.path.rmdir()
                    raise
            except OSError as error:  # in version 2, for example: a cgroup with processes gives its children no controller
                failures.append(str(error))
                continue
            self._processes = self.path / "cgroup.procs"
            self.join = f"echo $$ > {self._processes}"
            return
        raise OSError("; ".join(failures) or "no memory cgroup is mounted")

    def _set_limit(self, limit):
        legacy = self.path / "memory.limit_in_bytes"
        (legacy if legacy.exists() else self.path / "memory.max").write_text(str(limit))
        # Without swap space. In v1, a page more, so that the limit of memory alone is reached first, and counted.
        for swap, most in (("memory.swap.max", 0), ("memory.memsw.limit_in_bytes", limit + 4096)):
            if (self.path / swap).exists():
                (self.path / swap).write_text(str(most))

    def add(self, pid):
        self._processes.write_text(str(pid))

    def run_out_of_memory(self, size):
        """Runs a process in the cgroup that uses so much memory that the kernel kills it."""
        script = f"import os; open({str(self._processes)!r}, 'w').write(str(os.getpid())); len(bytearray({size}))"
        return subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode

    def remove(self):
        """Processes that a failed test has left in it go back to the cgroup above."""
        if not self.path.exists():
            return
        for pid in self._processes.read_text().split():
            with contextlib.suppress(ProcessLookupError):
                (self.path.parent / "cgroup.procs").write_text(pid)
        wait_until(lambda: not self._processes.read_text(), "the cgroup to be empty")
        self.path.rmdir()


@contextlib.contextmanager
def memory_cgroup(limit):
    made = MemoryCgroup(limit)
    try:
        yield made
    finally:
        made.remove()
