"""The processes under a supervisor of `exec`, and terminals to start one from."""

import contextlib
import os
import pty
import re
import select
import time
from pathlib import Path

from conftest import BUILD, environment
from servers import processes, wait_until


SLEEP = "echo pid $$.; exec sleep 600"


def children(pid):
    """Pid and state of each child."""
    return {child: state for child, (state, parent, _) in processes() if parent == pid}


def agent_of(supervisor):
    """Pid of the agent that the supervisor runs; None while there is none."""
    for pid in children(supervisor.pid):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"exec-collect" in words:
            return pid
    return None


def wait_for_agent(supervisor, other_than=None):
    return wait_until(lambda: (pid := agent_of(supervisor)) != other_than and pid, "an agent")


def wait_for_output(process, text, seconds=60):
    wait_until(lambda: text in process.output(), f"{text!r} in {process.output()!r}", seconds)


def command_of(supervisor):
    """Pid of the command, which prints it: `pid N.`."""
    wait_for_output(supervisor, "pid ")
    return int(re.search(r"pid (\d+)\.", supervisor.output())[1])


def state(pid):
    """Its state letter; Z also once it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def pending(pid, number):
    """Whether the process has not yet taken this signal."""
    lines = dict(line.split(":\t") for line in open(f"/proc/{pid}/status") if line.startswith(("SigPnd", "ShdPnd")))
    return any(int(mask, 16) >> number - 1 & 1 for mask in lines.values())


def threads_of_process(pid):
    """The names of its threads."""
    names = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # the thread has ended
            names.add((task / "comm").read_text().strip())
    return names


SLOW_CALLS = BUILD / "tests/e2e/worker/libe2e_slow_calls.so"


def slow(call, seconds=60):
    """The agent's program then hangs in this system call."""
    return {"LD_PRELOAD": str(SLOW_CALLS), "SLOW_CALLS": call, "SLOW_SECONDS": str(seconds)}


# Executes its arguments after the first under a filter in which the system call with that number fails with EPERM.
REFUSE = """
import ctypes, os, struct, sys
load_number, is_this, fail, allow = (0x20, 0, 0, 0), (0x15, 0, 1, int(sys.argv[1])), (6, 0, 0, 0x50001), (6, 0, 0, 0x7FFF0000)
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in (load_number, is_this, fail, allow)))
program = ctypes.create_string_buffer(struct.pack("@HP", 4, ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0, os.strerror(ctypes.get_errno())
os.execv(sys.argv[2], sys.argv[2:])
"""
CLOSE_RANGE = 436


def refusing(number):
    """The words in front of a command that make this system call fail, as a container's filter of system calls may."""
    return ["/usr/bin/python3", "-c", REFUSE, str(number)]


class Terminal:
    """A shell with job control on its own terminal."""

    def __init__(self, **env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve("/bin/bash", ["bash", "--norc", "--noediting", "-i"], environment(PS1="$ ", TERM="dumb", **env))
        self.seen = ""

    def type(self, text):
        os.write(self.fd, text.encode())

    def expect(self, pattern):
        deadline = time.monotonic() + 30
        while not (found := re.search(pattern, self.seen)):
            readable, _, _ = select.select([self.fd], [], [], max(0, deadline - time.monotonic()))
            assert readable, f"{pattern!r} not in {self.seen!r}"
            self.seen += os.read(self.fd, 4096).decode(errors="replace")
        self.seen = self.seen[found.end() :]
        return found

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Hangs up, which ends the shell and its jobs, stopped ones too."""
        os.close(self.fd)
        os.waitpid(self.pid, 0)
