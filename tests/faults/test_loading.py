"""A plugin is unloaded while threads that counted through it live, with either library."""

import pytest
from cases import BOTH, DIRECTORY, LONG, PROGRAMS, Case, environment, run_all


@pytest.mark.parametrize("library", ["shared", "static"])
def test_plugin(library):
    host, plugin = PROGRAMS / "fault_plugin_host", PROGRAMS / f"libfault_plugin_{library}.so"
    env = environment(PERSIA_METRICS_DIR=DIRECTORY)
    times = [1, 2, 50] + ([1000] if LONG else [])
    child = "the child's status 700\n"
    cases = [Case(f"{library}, {count} times", [host, plugin, count], env, complete=BOTH) for count in times]
    for case, count, outcome in zip(cases, times, run_all(cases)):
        assert outcome.stdout.count(child) == count, case.name
        assert outcome.counted()["parent"]["plugin/calls"] == 2 * count
