"""A seccomp filter refuses the system calls that the library makes and the program does not."""

import errno
import re
import subprocess

import pytest
from cases import BOTH, LONG, PROGRAMS, bare, run_all, scenario


def _calls(case, path):
    """The numbers of the system calls that a case makes, by strace."""
    path.unlink(missing_ok=True)
    case.command = ["strace", "--follow-forks", "--no-abbrev", "--syscall-number", f"--output={path}", *case.command]
    run_all([case])
    return {int(number): name for number, name in re.findall(r"^\d+ +\[ *(\d+)\] (\w+)\(", path.read_text(), re.M)}


def _refusing(numbers, error):
    return [PROGRAMS / "fault_refuse", getattr(errno, error), *sorted(numbers), "--"]


@pytest.mark.needs("ptrace")
@pytest.mark.parametrize("error", ["EPERM", "ENOSYS"] if LONG else ["EPERM"])
def test_refused_calls(error, way, result, tmp_path):
    own = _calls(bare(), tmp_path / "own")
    whole = _calls(scenario("traced", way, stdout=result, complete=BOTH), tmp_path / "whole")
    more = {number: name for number, name in whole.items() if number not in own}
    assert {"linkat", "fallocate"} <= set(more.values()), more
    run_all([bare(_refusing(more, error), stdout=result)])
    numbers = sorted(more)
    cases = [scenario(f"{error} of {more[number]}", way, _refusing([number], error), stdout=result) for number in numbers]
    for i in range(2, len(numbers) + 1):
        names = ", ".join(more[number] for number in numbers[:i])
        cases.append(scenario(f"{error} of {names}", way, _refusing(numbers[:i], error), stdout=result))
    run_all(cases)


def test_the_filter_refuses(result):
    """A call that the program needs is refused too, so a filter is in force."""
    own = subprocess.run([*map(str, _refusing([1], "EPERM")), "echo", "text"], capture_output=True, text=True, check=False)
    assert own.returncode != 0 and own.stdout == ""
    assert "counted parent" in result
