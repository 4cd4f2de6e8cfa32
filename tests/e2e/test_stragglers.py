"""A short form of ./run stragglers: a few delays, a few clean runs and a hang of each kind, in a job of real ranks."""

import os
import re
import subprocess

import pytest
from conftest import BUILD, PYTHON
from servers import ROOT

pytestmark = pytest.mark.timeout(600)


def stragglers(*flags):
    """The lines that a proof prints, by what they are about."""
    command = [PYTHON, ROOT / "tests/stragglers", "--clean=0", "--host-delays=0", "--host-hangs=0", "--delays=0", "--hangs=0", "--beside-others", *flags]
    done = subprocess.run(command, env={**os.environ, "PERSIA_BUILD_DIR": str(BUILD)}, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.findall(r"^(.+): (\d+) cases, the rank named in (\d+), with its phase in (\d+);", done.stdout, re.M)
    return {name: tuple(map(int, counts)) for name, *counts in found}


def test_a_slow_rank_and_one_that_hangs_are_named():
    found = stragglers("--delays=2", "--clean=2", "--hangs=3")
    assert found == {"delays, one agent": (2, 2, 2), "clean runs, one agent": (2, 2, 2), "hangs, one agent": (3, 3, 3)}


@pytest.mark.needs("namespaces")
def test_on_hosts_of_their_own_the_rules_name_them():
    found = stragglers("--host-delays=1", "--host-hangs=1")
    assert found == {name: (1, 1, 1) for name in ("delays, an agent for each rank", "hangs, an agent for each rank")}
