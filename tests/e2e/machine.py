"""Real cgroups and a real filesystem that hangs, for tests of what the agent reads of the machine. Both need root."""

import contextlib
import ctypes
import os
import re
import subprocess
import sys
import time
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_MNT_DETACH = 2


def _parents():
    """Directories of cgroups below which a cgroup with a memory limit may be possible: of v1, then of v2."""
    own = {controllers: path for _, controllers, path in (line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines())}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        found = re.search(r"^\S+ \S+ \S+ \S+ (\S+) .* - (cgroup2?) \S+ (\S+)", line)
        if not found:
            continue
        point, kind, options = found.groups()
        if kind == "cgroup" and "memory" in options.split(","):
            yield Path(point + own.get("memory", "/"))
            yield Path(point)
        if kind == "cgroup2":
            yield Path(point + own.get("", "/"))
            yield Path(point)


class Cgroup:
    """A cgroup with a memory limit, without processes."""

    def __init__(self, limit):
        self.path = None
        failures = []
        for parent in _parents():
            path = parent / f"persia-test-{os.getpid()}"
            try:
                path.mkdir()
                try:
                    self._set_limit(path, limit)
                    self.path = path
                    return
                except OSError:
                    path.rmdir()
                    raise
            except OSError as error:
                failures.append(str(error))
        raise OSError("; ".join(failures) or "no cgroup file system is mounted")

    @staticmethod
    def _set_limit(path, limit):
        legacy = path / "memory.limit_in_bytes"
        (legacy if legacy.exists() else path / "memory.max").write_text(str(limit))
        # Without swap space. In v1, a page more, so that the limit of memory alone is reached first, and counted.
        for swap, most in (("memory.swap.max", 0), ("memory.memsw.limit_in_bytes", limit + 4096)):
            if (path / swap).exists():
                (path / swap).write_text(str(most))

    def add(self, pid):
        (self.path / "cgroup.procs").write_text(str(pid))

    def run_out_of_memory(self, size):
        """Runs a process in the cgroup that uses so much memory that the kernel kills it."""
        script = f"import os; open({str(self.path / 'cgroup.procs')!r}, 'w').write(str(os.getpid())); len(bytearray({size}))"
        return subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode

    def remove(self):
        """Processes that a failed test has left in it go back to the cgroup above."""
        for pid in (self.path / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                (self.path.parent / "cgroup.procs").write_text(pid)
        deadline = time.monotonic() + 30
        while (self.path / "cgroup.procs").read_text():  # one that is ending
            assert time.monotonic() < deadline, f"processes are left in {self.path}"
            time.sleep(0.01)
        self.path.rmdir()


class HangingFilesystem:
    """A FUSE filesystem mounted on a directory, whose server never answers until the end."""

    def __init__(self, directory):
        self._directory = str(directory).encode()
        self._server = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self._server},rootmode=40000,user_id=0,group_id=0".encode()
        if _LIBC.mount(b"persia-test", self._directory, b"fuse", 0, options) != 0:
            error = ctypes.get_errno()
            os.close(self._server)
            raise OSError(error, f"mount of FUSE: {os.strerror(error)}")

    def end(self):
        """All calls that wait for it fail."""
        os.close(self._server)
        _LIBC.umount2(self._directory, _MNT_DETACH)


def try_cgroup():
    """Returns "", or why there can be none."""
    try:
        Cgroup(64 << 20).remove()
    except OSError as error:
        return str(error)
    return ""


def try_fuse(directory):
    try:
        HangingFilesystem(directory).end()
    except OSError as error:
        return str(error)
    return ""


@contextlib.contextmanager
def cgroup(limit):
    made = Cgroup(limit)
    try:
        yield made
    finally:
        made.remove()
