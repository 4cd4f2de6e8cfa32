"""A short form of ./run simulate, with a few agents for a few seconds, so that it keeps working. How fast they push is not tested."""

import json
import os
import subprocess

import pytest
from conftest import BUILD, PYTHON
from servers import ROOT


def simulate(*flags):
    """The measured cases."""
    command = [PYTHON, ROOT / "tests/simulate", "--json", "--interval=0.5", *flags]
    done = subprocess.run(command, env={**os.environ, "PERSIA_BUILD_DIR": str(BUILD)}, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("check", ["on", "off"])
def test_each_case_is_measured(check):
    rows = simulate("--agents=4", "--only", "--series=50", "--gateways=1,2", "--seconds=1.5", f"--check={check}", "--all")
    assert [(row["gateways"], row["agents"], row["check"]) for row in rows] == [(1, 4, check == "on"), (2, 4, check == "on")]
    for row in rows:
        assert 0 < row["handlers"]["push"] <= row["all_requests"] + 2 * 4, "two groups of each agent, on one gateway each"
        assert 0 < row["median"] <= row["p99"]
        assert row["cpu"] > 0 and row["memory"] > 1e6 and row["page"] > 0


def test_agents_that_start_at_once_cost_the_gateway_their_pushes_alone():
    """Since the start of all: no agent reads the gateway's page, which alone is larger than all of these answers."""
    agents = 100
    (row,) = simulate(f"--agents={agents}", "--only", "--series=10", "--gateways=1", "--seconds=1", "--interval=1", "--check=off")
    handlers = row["handlers"]
    assert set(handlers) <= {"push", "api/v1/status", "ready"}
    assert 0 < handlers["push"] <= row["all_requests"] + 2 * agents, "those that ended after the count"
    assert handlers["api/v1/status"] <= agents, "one for each connection, for the push format"
    assert row["answer_bytes"] / sum(handlers.values()) < 500


def test_where_it_no_longer_holds_it_says_so_and_stops():
    # Two thousand such groups a second are more than any gateway can check.
    rows = simulate("--agents=30", "--series=2500", "--gateways=1", "--interval=0.01", "--seconds=0.5", "--check=on")
    assert [row["agents"] for row in rows] == [10]
    assert "pushes are left out" in rows[0]["verdict"]
