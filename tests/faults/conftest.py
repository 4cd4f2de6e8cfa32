"""Fixtures of the fault tests."""

import resource
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(_ROOT / folder) for folder in ("tests/faults", "tests/e2e", "examples/demo")]

import needs  # noqa: E402
from cases import INJECT, bare, run, run_all, scenario  # noqa: E402

resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))  # a program may end by a signal


@pytest.fixture(scope="session")
def result():
    """The output of the scenario without the library."""
    (outcome,) = run_all([bare()])
    assert "counted parent" in outcome.stdout
    return outcome.stdout


@pytest.fixture(scope="session", params=["env", "init"])
def way(request):
    return request.param


@pytest.fixture(scope="session")
def calls(way):
    """How often the scenario calls each function that can fail, inside the library."""
    return run(scenario("counting", way, env={"LD_PRELOAD": str(INJECT)})).calls


def pytest_configure(config):
    config.option.strict_markers = True
    config.pluginmanager.register(needs)
