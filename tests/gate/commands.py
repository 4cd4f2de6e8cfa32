"""Commands under a deadline, each in a process group of its own."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "build/logs"
TOOLS = ROOT / "build/tools/usr/bin"
PYTHON = "/usr/bin/python3"
PROCESSORS = len(os.sched_getaffinity(0))
_SECONDS_TO_END = 70  # the Docker engine takes up to 60


# The commands that run now: in threads, several at a time.
_running = set()
_ending = False


class TimeOver(Exception):
    """A command has not ended before its deadline, and was killed."""


def environment(**more):
    path = os.environ.get("PATH", os.defpath)
    return {**os.environ, "PATH": f"{path}:{TOOLS}", **{name: str(value) for name, value in more.items()}}


def run(words, log, deadline, env=None, append=False):
    """Runs a command without stdin, its output into the file `log`. Returns its exit status; at the deadline, it raises TimeOver."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "ab" if append else "wb") as output:
        words = [str(word) for word in words]
        process = subprocess.Popen(
            words, cwd=ROOT, env=env or environment(), stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        _running.add(process)
        try:
            return process.wait(0 if _ending else max(deadline - time.monotonic(), 0.001))
        except BaseException as error:
            end_group(process)
            if isinstance(error, subprocess.TimeoutExpired):
                raise TimeOver(f"{' '.join(words)}: not ended in its time") from None
            raise
        finally:
            _running.discard(process)


def end_on_signals():
    """A signal to this process ends the commands of all its threads, and then itself."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, _end)


def _end(number, _):
    global _ending
    _ending = True
    for process in list(_running):
        end_group(process)
    sys.exit(128 + number)


def end_group(process):
    """Asks the processes of a group to end, then kills them."""
    for number, seconds in ((signal.SIGTERM, _SECONDS_TO_END), (signal.SIGKILL, _SECONDS_TO_END)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)


def tail(log, lines=40):
    """The end of a log, indented."""
    text = log.read_text(errors="replace") if log.exists() else ""
    return "\n".join("    " + line for line in text.splitlines()[-lines:])
