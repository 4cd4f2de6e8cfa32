"""`emit` to stdout and into a named pipe, and the copy of a registry of prometheus-cpp, while a call fails."""

import errno
import re

import pytest
from cases import BOTH, DIRECTORY, INJECT, LONG, PROGRAMS, Case, environment, run, run_all

_FUNCTIONS = {"malloc": ("ENOMEM",), "open": ("EIO", "EMFILE"), "fstat": ("EIO",), "fcntl": ("EIO",), "write": ("EIO", "ENOSPC"), "pthread_create": ("EAGAIN",)}


def _faults(calls, stride):
    """Each call of each function, once and from then on."""
    for function, errors in _FUNCTIONS.items():
        step = 1 if LONG or function != "malloc" else stride
        for at in range(1, calls[function] + 2, step):
            for error in errors:
                for on in ("", "+"):
                    yield f"{function}:{at}{on}:{getattr(errno, error)}"


@pytest.mark.parametrize("mode", ["stdout", "fifo"])
def test_emit(mode):
    pipe = f"{DIRECTORY}/pipe"

    def case(fault=None):
        env = environment(BENCHMARK_AI=mode, BENCHMARK_AI_FIFO_FILEPATH=pipe, BENCHMARK_AI_FIFO_MAX_WAIT_TIME="0.2", LD_PRELOAD=str(INJECT))
        return Case(f"{mode} {fault}", [PROGRAMS / "fault_emit", pipe], env | ({"FAULTS": fault} if fault else {}))

    whole = run(case())
    assert whole.stdout.count(" 0 done") == whole.stdout.count('{"a name that') == 6
    wrong = []
    for outcome in run_all([case(fault) for fault in _faults(whole.calls, 3)]):
        statuses = re.findall(r"^status (\d) (\d+) (.*)$", outcome.stdout, re.M)
        arrived = set(re.findall(r"^\{.*small string, (\d)", outcome.stdout, re.M))
        done = {number for number, status, _ in statuses if status == "0"}
        if len(statuses) != 6 or not done <= arrived or any(not text for _, status, text in statuses if status != "0"):
            wrong.append(f"{outcome.case.name}: {statuses}, arrived {sorted(arrived)}\n  again: {outcome.case.shell()}")
    assert not wrong, f"{len(wrong)} cases\n" + "\n".join(wrong[:12])


def test_copied_registry():
    program = PROGRAMS / "fault_copy"

    def case(fault=None):
        env = environment(PERSIA_METRICS_DIR=DIRECTORY, LD_PRELOAD=str(INJECT)) | ({"FAULTS": fault} if fault else {})
        return Case(f"copy {fault}", [program], env, complete=() if fault else BOTH, a_line_is_enough=True)

    (whole,) = run_all([case()])
    assert whole.calls["pthread_create"] == 1
    run_all([case(fault) for fault in _faults(whole.calls, 3)])
