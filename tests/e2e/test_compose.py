"""docker-compose.yml: valid, consistent, and its commands work as plain processes."""

import json
import shlex
import subprocess

import pytest
import yaml
from conftest import AGENT, EMBEDDING_JOB, environment
from servers import ROOT, Process, free_port, wait_until

COMPOSE = ROOT / "docker-compose.yml"
JOB_SERVICES = ["data_compose", "trainer", "middleware", "server", "server_1"]
PROGRAMS = {"embedding_job": EMBEDDING_JOB, "persia-metrics-agent": AGENT}


@pytest.fixture(scope="module")
def compose():
    """The file as docker-compose understands it."""
    result = subprocess.run(["docker-compose", "-f", COMPOSE, "config"], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    return yaml.safe_load(result.stdout)


def test_file_is_valid():
    result = subprocess.run(["docker-compose", "-f", COMPOSE, "config", "-q"], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_job_and_agent_share_one_directory_in_memory(compose):
    assert set(compose["services"]) == {*JOB_SERVICES, "agent", "metrics_gateway"}
    assert compose["volumes"]["segments"]["driver_opts"]["type"] == "tmpfs"
    for name in [*JOB_SERVICES, "agent"]:
        service = compose["services"][name]
        assert service["environment"]["PERSIA_METRICS_DIR"] == "/persia-metrics"
        assert [volume.split(":")[:2] for volume in service["volumes"]] == [["segments", "/persia-metrics"]]
        assert service["environment"]["PERSIA_JOB_NAME"] == "embedding_job"


def test_identities_are_distinct(compose):
    environments = [compose["services"][name]["environment"] for name in JOB_SERVICES]
    identities = {(each["PERSIA_ROLE"], str(each["REPLICA_INDEX"])) for each in environments}
    assert len(identities) == len(JOB_SERVICES)


def test_commands_work_as_plain_processes(compose, segments, gateway, started, tmp_path):
    """Every service's command and environment, with loopback ports for the services' addresses."""
    ports = {name: free_port() for name in ("middleware", "server", "server_1")}
    processes = {}

    def here(name, word):
        word = PROGRAMS.get(word, word)
        if isinstance(word, str):
            if word.startswith(":"):
                return f"127.0.0.1:{ports[name]}"
            for host in ("middleware:7001", "server:7002", "server_1:7002"):
                word = ",".join(f"127.0.0.1:{ports[host.split(':')[0]]}" if part == host else part for part in word.split(","))
            if word == "600":
                return "5"
        return word

    for name in ["agent", *JOB_SERVICES]:
        service = compose["services"][name]
        env = {**service["environment"], "PERSIA_METRICS_DIR": segments, "PERSIA_METRICS_GATEWAY_ADDR": gateway.address}
        env |= {"PERSIA_METRICS_PUSH_INTERVAL": "0.2", "PERSIA_METRICS_LISTEN_ADDR": f"127.0.0.1:{free_port()}"}
        env = environment(**{key: str(value) for key, value in env.items()})
        command = [here(name, word) for word in shlex.split(service["command"])]
        processes[name] = Process(command, tmp_path / f"{name}.log", env=env)
        started(processes[name])

    for name in JOB_SERVICES:
        assert processes[name].wait(60) == 0, processes[name].output()
    pushed = wait_until(lambda: (seen := gateway.metrics()).one("lookup_rpc_time_cost_count", role="middleware") and seen, "the middleware's metrics")
    for replica in (0, 1):
        assert pushed.one("index_miss_count", role="server", instance=f"rep_{replica}") > 0, json.dumps(sorted(map(str, pushed)))
