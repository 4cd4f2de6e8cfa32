"""Standard descriptors that are closed, full, or without a reader."""

import pytest
from cases import BOTH, bare, run, run_all, scenario


def _shell(script):
    return ["sh", "-c", script, "sh"]


@pytest.mark.parametrize("closed", ["0<&-", "2>&-", "0<&- 2>&-"])
def test_closed(way, closed):
    """The first file that the library opens gets the number of a standard descriptor."""
    wrapper = _shell(f'exec "$@" {closed}')
    stdout = run(bare(wrapper)).stdout
    run_all([scenario(closed, way, wrapper, stdout=stdout, complete=BOTH)])


# The causes of a log line.
_REFUSED = {"PERSIA_METRICS_DIR": "/proc/no-directory", "FAULTS_DIRECTORY": "/proc/no-directory"}


def test_a_line_is_logged(way, result):
    (outcome,) = run_all([scenario("a directory that cannot be made", way, env=_REFUSED, stdout=result)])
    assert outcome.logged()


@pytest.mark.parametrize("stderr", ["2>/dev/full", "2>&-", "2> >(exec true)"])
def test_a_line_that_cannot_be_logged(way, stderr):
    """A line to a pipe whose reader has gone must not end the program by SIGPIPE."""
    wait = "sleep 0.05; " if "true" in stderr else ""
    wrapper = ["bash", "-c", f'exec {stderr}; {wait}exec "$@"', "bash"]
    stdout = run(bare(wrapper)).stdout
    run_all([scenario(stderr, way, wrapper, env=_REFUSED, stdout=stdout, expected={})])


# Standard error is a pipe that is full, and whose reader only keeps it open.
_FULL = """
import os, sys
reader, writer = os.pipe()
os.set_inheritable(reader, True)
os.set_blocking(writer, False)
try:
    while True:
        os.write(writer, b"x" * 4096)
except BlockingIOError:
    os.set_blocking(writer, True)
os.dup2(writer, 2)
os.execvp(sys.argv[1], sys.argv[1:])
"""


def test_a_line_that_nothing_reads(way):
    """The run ends: a reader that hangs does not hang the program."""
    wrapper = ["python3", "-c", _FULL]
    stdout = run(bare(wrapper)).stdout
    run_all([scenario("2>full pipe", way, wrapper, env=_REFUSED, stdout=stdout, expected={})])
