"""The compose files: valid, consistent, and confined. tests/docker runs them."""

import json
import re
import subprocess
from pathlib import Path

import compose_file
import pytest
import yaml
from servers import ROOT

pytestmark = pytest.mark.static

FILES = ["docker-compose.yml", "config/compose/swarm.yml", "config/compose/victoria.yml"]
JOB_SERVICES = ["data_compose", "trainer", "middleware", "server", "server_1"]


@pytest.fixture(scope="module", params=FILES)
def any_file(request):
    return compose_file.load(request.param)


@pytest.fixture(scope="module")
def compose():
    return compose_file.load("docker-compose.yml")


@pytest.fixture(scope="module")
def swarm():
    return compose_file.load("config/compose/swarm.yml")


@pytest.fixture(scope="module")
def victoria():
    return compose_file.load("config/compose/victoria.yml")


def mounts(service):
    """Source by target of a service's mounts."""
    return {volume["target"]: volume.get("source") for volume in service.get("volumes", [])}


def published(port):
    """A port that is published on loopback only, under its own number."""
    return {"mode": "ingress", "host_ip": "127.0.0.1", "published": port, "target": port, "protocol": "tcp"}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("profiles", [[], ["persiaml"]])
def test_file_is_valid(name, profiles):
    words = [word for profile in profiles for word in ("--profile", profile)]
    command = ["docker-compose", *words, "-f", ROOT / name, "config", "-q"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout, compose_file.unexpected_warnings(name, result.stderr)) == (0, "", "")


@pytest.mark.parametrize(("wrong", "right"), [("`version` is obsolete", "`versions` is obsolete"), ("\n", "\nanother warning\n")])
def test_one_warning_is_expected_and_no_other(wrong, right):
    obsolete = "the attribute `version` is obsolete, it will be ignored, please remove it to avoid potential confusion"
    warning = f'time="2024-01-01T00:00:00Z" level=warning msg="{ROOT}/config/compose/swarm.yml: {obsolete}"\n'
    assert compose_file.unexpected_warnings("config/compose/swarm.yml", warning) == ""
    assert compose_file.unexpected_warnings("docker-compose.yml", warning) == warning
    other = warning.replace(wrong, right)
    assert compose_file.unexpected_warnings("config/compose/swarm.yml", other) == other


SHORT = {
    "command": "run --listen ':1'",
    "environment": {"A": 5},
    "healthcheck": {"test": ["NONE"], "start_period": "1m"},
    "mem_limit": "256m",
    "ports": ["127.0.0.1:9091:9091/tcp", "8080:80", "81"],
    "volumes": ["/etc:/x:ro", "state:/y:rw", {"type": "tmpfs", "target": "/z", "tmpfs": {"size": 64}}],
}
LONG = {
    "command": ["run", "--listen", ":1"],
    "environment": {"A": "5"},
    "healthcheck": {"disable": True, "start_period": "1m0s"},
    "mem_limit": "268435456",
    "networks": {"default": None},
    "ports": [
        {"mode": "ingress", "host_ip": "127.0.0.1", "target": 9091, "published": "9091", "protocol": "tcp"},
        {"mode": "ingress", "target": 80, "published": "8080", "protocol": "tcp"},
        {"mode": "ingress", "target": 81, "protocol": "tcp"},
    ],
    "volumes": [
        {"type": "bind", "source": "/etc", "target": "/x", "read_only": True, "bind": {"create_host_path": True}},
        {"type": "volume", "source": "state", "target": "/y", "volume": {}},
        {"type": "tmpfs", "target": "/z", "tmpfs": {"size": "64"}},
    ],
}


def test_short_and_long_syntax_are_read_as_one():
    short = compose_file.normalised({"services": {"one": SHORT}, "volumes": {"state": {}}})
    long = compose_file.normalised({"name": "here", "services": {"one": LONG}, "volumes": {"state": {"name": "here_state"}}})
    assert short == long
    assert [port["host_ip"] for port in short["services"]["one"]["ports"]] == ["127.0.0.1", "", ""]
    assert short["services"]["one"]["command"] == LONG["command"]


def test_with_victoria_the_job_is_the_same_and_its_agent_writes_to_the_database(compose, victoria):
    assert set(victoria["services"]) == {*JOB_SERVICES, "agent", "victoria", "grafana"}
    one, other = ({**file["services"]["agent"], "environment": {}, "depends_on": []} for file in (victoria, compose))
    assert one == other
    for name in (*JOB_SERVICES, "grafana"):
        assert victoria["services"][name] == compose["services"][name]
    assert victoria["volumes"]["segments"] == compose["volumes"]["segments"]
    told = victoria["services"]["agent"]["environment"]
    assert told["PERSIA_METRICS_GATEWAY_ADDR"] == "off"
    host, port = re.fullmatch(r"http://(\w+):(\d+)/api/v1/write", told["PERSIA_METRICS_REMOTE_WRITE_URL"]).groups()
    assert f"-httpListenAddr=:{port}" in victoria["services"][host]["command"]
    directory = told["PERSIA_METRICS_STATE_DIR"].rpartition("/")[0]
    assert mounts(victoria["services"]["agent"]) == {"/persia-metrics": "segments", directory: "state"}
    # Grafana's data source is that of docker-compose.yml.
    source = yaml.safe_load((ROOT / "config/grafana/provisioning/datasources/prometheus.yaml").read_text())["datasources"][0]
    assert source["url"] == f"http://{victoria['services'][host]['networks']['default']['aliases'][0]}:{port}"


def test_in_swarm_each_service_has_an_agent_and_segments_of_its_own(compose, swarm):
    states = set()
    for name in JOB_SERVICES:
        service = swarm["services"][name]
        words = service["command"]
        agent, command = words[: words.index("--")], words[words.index("--") + 1 :]
        assert command == compose["services"][name]["entrypoint"] + compose["services"][name]["command"]
        assert agent[0] == "exec"
        states |= {word.removeprefix("--state-dir=") for word in agent if word.startswith("--state-dir=")}
        memory = [volume["target"] for volume in service["volumes"] if volume["type"] == "tmpfs"]
        assert service["environment"]["PERSIA_METRICS_DIR"].rpartition("/")[0] in memory
        assert service["deploy"]["restart_policy"]["condition"] == "on-failure", "one that succeeds is done"
    assert len(states) == len(JOB_SERVICES), "two agents on one host would share a state"


def test_identities_are_distinct(any_file):
    environments = [any_file["services"][name]["environment"] for name in JOB_SERVICES]
    identities = {(each["PERSIA_ROLE"], str(each["REPLICA_INDEX"])) for each in environments}
    assert len(identities) == len(JOB_SERVICES)


def test_docker_stack_deploy_is_told_the_version():
    """Without a version, Docker Engine 20.10 takes the file for version 1, which it refuses."""
    assert yaml.safe_load((ROOT / "config/compose/swarm.yml").read_text())["version"] == "3.8"


def test_services_may_do_no_more_than_they_must(any_file, swarm):
    for name, service in any_file["services"].items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["read_only"] is True, name
        assert int(service["user"].partition(":")[0]) > 0, name
        assert "privileged" not in service and "network_mode" not in service and "cap_add" not in service, name
        for port in service.get("ports", []):
            assert port["host_ip"] == "127.0.0.1", f"{name}: {port}"
    # Swarm has no such setting.
    if any_file != swarm:
        assert all(service["security_opt"] == ["no-new-privileges:true"] for service in any_file["services"].values())


def test_images_are_pinned_and_those_of_the_job_have_the_projects_version(any_file):
    for name, service in any_file["services"].items():
        tag = service["image"].rpartition(":")[2]
        assert re.fullmatch(r"v?\d+\.\d+\.\d+(-\w+)?", tag), f"{name}: {service['image']}"
    version = re.search(r"VERSION (\d+\.\d+\.\d+)", (ROOT / "CMakeLists.txt").read_text())[1]
    for name in JOB_SERVICES:
        assert any_file["services"][name]["image"].endswith(f"persia-metrics-demo:{version}")


def test_services_that_last_start_again_and_are_checked(compose):
    for name in ("agent", "metrics_gateway", "prometheus", "grafana", "persia_nats_service"):
        service = compose["services"][name]
        assert service["restart"] == "unless-stopped" and "healthcheck" in service


def test_one_service_builds_the_image(compose, victoria):
    """Compose builds services in parallel, and the build of a tag by two of them may fail."""
    for file in (compose, victoria):
        assert [name for name, service in file["services"].items() if "build" in service] == ["agent"]
        assert file["services"]["agent"]["build"]["target"] == "demo"


def test_services_are_limited_in_memory_and_logs(compose, victoria):
    for file in (compose, victoria):
        for name, service in file["services"].items():
            assert service["mem_limit"] > 0 and set(service["logging"]["options"]) == {"max-size", "max-file"}, name


def test_gateways_keep_their_values(compose, swarm):
    for file in (compose, swarm):
        service = file["services"]["metrics_gateway"]
        folder = re.search(r"--persistence.file=(/\w+)/", " ".join(service["command"]))[1]
        assert mounts(service)[folder] in file["volumes"]


def test_what_is_mounted_is_there(any_file):
    for name, service in any_file["services"].items():
        for target, source in mounts(service).items():
            if source is not None and source.startswith("/"):
                found = ROOT / source
                assert found.is_dir() and any(found.iterdir()), f"{name} mounts {source} at {target}"
            elif source is not None:
                assert source in any_file["volumes"]


def test_grafana_finds_prometheus_and_its_boards(compose):
    where = mounts(compose["services"]["grafana"])
    provisioning = ROOT / "config/grafana/provisioning"
    assert where["/etc/grafana/provisioning"] == str(provisioning)
    for file in (provisioning / "dashboards").glob("*.yaml"):
        for provider in yaml.safe_load(file.read_text())["providers"]:
            folder = where[provider["options"]["path"]]
            boards = sorted((ROOT / folder).glob("*.json"))
            assert boards and all(json.loads(board.read_text())["uid"] for board in boards)
            home = Path(compose["services"]["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
            assert str(home.parent) == provider["options"]["path"] and ROOT / folder / home.name in boards
    for file in (provisioning / "datasources").glob("*.yaml"):
        for source in yaml.safe_load(file.read_text())["datasources"]:
            host, port = re.fullmatch(r"http://(\w+):(\d+)", source["url"]).groups()
            assert compose["services"][host]["ports"] == [published(int(port))]
