"""Writes the stacks of all threads when the process crashes, and when the agent asks a process that hangs.

PERSIA_METRICS_STACKS=1 in the environment turns it on when the process's metrics become visible to an agent. Python's faulthandler then writes the stacks to a file
beside the process's segment, `<pid>-<start ticks>.stacks`: on SIGSEGV, SIGFPE, SIGABRT, SIGBUS and SIGILL, and on a signal that the
file's first line names. faulthandler neither takes the lock of the interpreter nor allocates, so this works in a thread that hangs in C.
A program that enables faulthandler itself, or handles that signal, keeps its own; then the agent shows no stacks.

Thread safety: `install` in the thread that imports the package or calls `init`.
"""

from __future__ import annotations

import atexit
import faulthandler
import os
import signal
import sys
from typing import Optional

# Real-time signals have no default use; this one is far from those that the C library and debuggers take.
_SIGNAL = signal.SIGRTMIN + 15

_directory = ""
_path: Optional[str] = None
_file: Optional[int] = None


def install(segment: str) -> None:
    """Opens the file beside the process's segment. If that fails, prints one line; the program goes on."""
    global _directory
    if _directory:
        return
    _directory = os.path.dirname(segment)
    try:
        _start()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_start_in_child)
        atexit.register(_remove)
    except Exception as error:
        print(f"persia_metrics: no stacks on a crash: {type(error).__name__}: {error}", file=sys.stderr)


def _start() -> None:
    global _path, _file
    if signal.getsignal(_SIGNAL) != signal.SIG_DFL or faulthandler.is_enabled():
        return
    with open("/proc/self/stat", "rb") as stat:
        start = stat.read().rpartition(b")")[2].split()[19].decode()
    path = os.path.join(_directory, f"{os.getpid()}-{start}.stacks")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    file = os.open(path, flags, 0o600)
    try:
        faulthandler.enable(file=file, all_threads=True)
        faulthandler.register(_SIGNAL, file=file, all_threads=True, chain=False)
        os.write(file, f"persia-metrics stacks 1 signal {int(_SIGNAL)}\n".encode())
    except Exception:
        os.close(file)
        os.unlink(path)
        raise
    _path, _file = path, file


def _start_in_child() -> None:
    """A forked child has a file of its own."""
    global _path, _file
    if _file is None:
        return
    faulthandler.unregister(_SIGNAL)
    faulthandler.disable()
    os.close(_file)
    _path = _file = None
    try:
        _start()
    except Exception:  # the child has no stacks
        pass


def _remove() -> None:
    if _path is not None:
        try:
            os.unlink(_path)
        except OSError:
            pass
