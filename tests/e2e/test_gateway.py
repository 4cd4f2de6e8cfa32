"""The gateway of an agent: one address. It may change, and without a setting it is the default, if that has an address."""

import json
import re
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from conftest import AGENT, PYTHON, GatewayHandle, environment
from needs import in_namespaces
from servers import wait_until

RANKS = range(4)


@pytest.fixture
def gateways(tmp_path):
    """Two gateways, requested before the job, so that they end after its agents' last push."""
    handles = []
    for number in range(2):
        directory = tmp_path / f"gateway-{number}"
        directory.mkdir()
        handles.append(GatewayHandle(directory))
    yield handles
    for handle in handles:
        handle.server.stop()


@pytest.fixture
def bare_job(job):
    """A job whose agents are not given the usual gateway."""
    usual = job.flags
    job.flags = lambda address, more: [flag for flag in usual(address, ()) if not flag.startswith("--gateway=")] + list(more)
    return job


def batches(handle):
    """A gateway's values of the ranks, by instance."""
    return {dict(labels)["instance"]: value for (name, labels), value in handle.metrics().items() if name == "my_app_batches"}


def test_when_the_gateway_changes_the_groups_move(gateways, bare_job, tmp_path):
    former, other = gateways
    config = tmp_path / "config.yaml"
    config.write_text(f"PersiaMetricsConfig: {{gateway_address: {former.address}}}\n")
    agent = bare_job.agent(f"--config={config}")
    for rank in RANKS:
        bare_job.worker(replica=rank).tell("count my_app batches 1")
    everything = {f"rep_{rank}": 1 for rank in RANKS}
    wait_until(lambda: batches(former) == everything, "the gateway to have all")
    config.write_text(f"PersiaMetricsConfig: {{gateway_address: {other.address}}}\n")
    agent.signal(signal.SIGHUP)
    wait_until(lambda: batches(other) == everything, "the other gateway to have all")
    wait_until(lambda: not former.groups(), "the former gateway to be empty")


@pytest.mark.parametrize(
    "value, quoted, advice",
    [
        ("[gw-0:9091, gw-1:9091]", '"gw-0:9091,gw-1:9091"', "give one address, and other agents another one"),
        ("gw-0:9091, gw-1:9091", '"gw-0:9091, gw-1:9091"', "give one address, and other agents another one"),
        ("dns+tasks.gw:9091", '"dns+tasks.gw:9091"', "leave dns+ out, or give one address, and other agents another one"),
    ],
)
def test_an_agent_has_one_gateway(tmp_path, value, quoted, advice):
    config = tmp_path / "config.yaml"
    config.write_text(f"PersiaMetricsConfig:\n  gateway_address: {value}\n")
    done = subprocess.run([AGENT, "check-config", f"--config={config}"], env=environment(), capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    for part in (f"{config}:2:20: gateway_address: gateway address {quoted}: ", "an agent pushes to one gateway; ", advice):
        assert part in done.stdout + done.stderr


def test_a_job_runs_although_its_agent_is_given_several_gateways(bare_job):
    agent = bare_job.exec_worker("--gateway=gw-0:9091,gw-1:9091")
    agent.tell("count my_app batches 7")
    wait_until(lambda: agent.metrics().one("my_app_batches") == 7, "the agent to have read the worker")
    assert agent.leave() == 0
    assert 'gateway address "gw-0:9091,gw-1:9091": it is a list' in agent.output() and "nothing is pushed to a gateway" in agent.output()


@pytest.mark.needs("namespaces")
def test_without_a_setting_there_is_a_gateway_once_the_defaults_name_is_known():
    script = Path(__file__).with_name("default_gateway_world.py")
    with tempfile.TemporaryDirectory(prefix="persia-names-", dir="/dev/shm") as directory:
        done = subprocess.run(in_namespaces(PYTHON, script, directory), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout)
    for log in (seen["short_job"], seen["log"]):
        assert log.count("no gateway: gateway_address is not set") == 1, log
        assert not re.search("warn|error", log, re.IGNORECASE), log
    assert seen["status"] == {"state": "running", "delivery": None, "gateway": "off"}
    assert "no gateway" not in seen["short_job_with_it"]
    assert seen["jobs"] == ["long", "with"]
