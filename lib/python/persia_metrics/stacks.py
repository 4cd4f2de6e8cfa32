"""Writes the stacks of all threads when the process crashes, and when the agent asks a process that hangs.

PERSIA_METRICS_STACKS=1 in the environment turns it on when the process's metrics become visible to an agent. Python's faulthandler then writes the stacks to a file
beside the process's segment, `<pid>-<start ticks>.stacks`: on SIGSEGV, SIGFPE, SIGABRT, SIGBUS and SIGILL, and on a signal that the
file's first line names. faulthandler neither takes the lock of the interpreter nor allocates, so this works in a thread that hangs in C.
A program that has enabled faulthandler itself, or handles that signal, keeps its own; then there is no file. One that enables faulthandler
afterwards has the stacks of a crash where it wants them; the file only receives those that the agent asks for.

faulthandler writes to a descriptor's number, and does not tell which. So a forked child replaces the file behind the number, and touches no
handler: those of the program stay.

Thread safety: `install` in the thread that imports the package or calls `init`.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import faulthandler
import os
import signal
import sys
from typing import Optional, Tuple

from . import _at_exit

# Real-time signals have no default use; this one is far from those that the C library and debuggers take.
_SIGNAL = signal.SIGRTMIN + 15
# A program that closes all descriptors, as a daemon does, gets the lowest numbers for its own files next: not this one.
_LOWEST_NUMBER = 500

_directory = ""
_path: Optional[str] = None
_file: Optional[int] = None
_identity: Tuple[int, int] = (0, 0)  # of the file that was opened as `_file`


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
        _at_exit.append(_remove)
    except Exception as error:
        print(f"persia_metrics: no stacks on a crash: {type(error).__name__}: {error}", file=sys.stderr)


def _start() -> None:
    global _path, _file, _identity
    if signal.getsignal(_SIGNAL) != signal.SIG_DFL or faulthandler.is_enabled():
        return
    path, file = _open()
    try:
        file = _high(file)
        faulthandler.enable(file=file, all_threads=True)
        faulthandler.register(_SIGNAL, file=file, all_threads=True, chain=False)
        _identity = _identity_of(file)
    except Exception:
        os.close(file)
        os.unlink(path)
        raise
    _path, _file = path, file


def _open() -> Tuple[str, int]:
    """This process's file, with its first line."""
    with open("/proc/self/stat", "rb") as stat:
        start = stat.read().rpartition(b")")[2].split()[19].decode()
    path = os.path.join(_directory, f"{os.getpid()}-{start}.stacks")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # of the program that this process was before an exec
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    file = os.open(path, flags, 0o600)
    try:
        os.fchmod(file, 0o600)  # regardless of the umask
        os.write(file, f"persia-metrics stacks 1 signal {int(_SIGNAL)}\n".encode())
    except Exception:
        os.close(file)
        os.unlink(path)
        raise
    return path, file


def _high(file: int) -> int:
    try:
        high = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, _LOWEST_NUMBER)
    except OSError:  # the limit on descriptors is lower
        return file
    os.close(file)
    return high


def _identity_of(file: int) -> Tuple[int, int]:
    info = os.fstat(file)
    return info.st_dev, info.st_ino


def _start_in_child() -> None:
    """A forked child has a file of its own."""
    global _path, _identity
    _path = None
    if _file is None:
        return
    try:
        if _identity_of(_file) != _identity:  # the program has closed it, and opened another file
            return
        try:
            path, file = _open()
        except Exception:  # the child has no stacks, and must not write those of its parent
            path, file = None, os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(file, _file, inheritable=False)
        os.close(file)
        _path, _identity = path, _identity_of(_file)
    except OSError:  # closed, or no descriptor is left
        pass


def _remove() -> None:
    if _path is not None:
        try:
            os.unlink(_path)
        except OSError:
            pass
