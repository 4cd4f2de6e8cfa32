"""Runs one command with a time limit, and leaves none of its processes behind, in whatever session they are. Not thread-safe."""

import contextlib
import ctypes
import dataclasses
import os
import resource
import signal
import subprocess
import tempfile
import time
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_MAX_FILE_BYTES = 4 << 30  # what a mutant may write into one file


@dataclasses.dataclass(frozen=True)
class Ended:
    code: int  # negative: a signal
    output: str
    seconds: float
    timed_out: bool

    @property
    def ok(self):
        return self.code == 0 and not self.timed_out


def adopt_orphans():
    """Makes this process the parent of its descendants' orphans, so that `run` finds them."""
    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError("prctl(PR_SET_CHILD_SUBREAPER) failed")


def _descendants():
    children = {}
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((directory / "stat").read_text().rsplit(")", 1)[1].split()[1])
            children.setdefault(parent, []).append(int(directory.name))
    found, wanted = [], [os.getpid()]
    while wanted:
        below = children.get(wanted.pop(), [])
        found += below
        wanted += below
    return found


def end_descendants(seconds=30):
    """Kills all that this process started, until nothing is left."""
    deadline = time.monotonic() + seconds
    while found := _descendants():
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if time.monotonic() > deadline:
            raise RuntimeError(f"cannot end the processes {found}")
        time.sleep(0.01)


def _in_child():
    os.setsid()
    # The soft limit only: tests set others.
    resource.setrlimit(resource.RLIMIT_FSIZE, (_MAX_FILE_BYTES, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # If a mutant takes all memory, the kernel ends it first.
    Path("/proc/self/oom_score_adj").write_text("1000")


def run(command, seconds, cwd, env=None):
    """Runs the command. `output` has stdout and stderr."""
    began = time.monotonic()
    timed_out = False
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=_in_child,  # noqa: PLW1509: this program has no threads
            )
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                timed_out = True
                process.kill()
                process.wait()
        finally:
            end_descendants()
        output.seek(0)
        text = output.read().decode(errors="replace")
    return Ended(process.returncode, text, time.monotonic() - began, timed_out)
