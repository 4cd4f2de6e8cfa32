"""The compose files' services as plain processes, each in its own namespaces, which find each other by name. The files'
commands, environments, volumes, users, capabilities, read-only roots and health checks work, and the metrics arrive.

Not run: grafana, which Debian does not have, and the build of the image, which `./run image-check` does.
"""

import json
import shutil
import sys
import tempfile
import urllib.parse
from pathlib import Path

import compose_file
import pytest
from conftest import AGENT, EMBEDDING_JOB, Samples
from containers import Container, Host
from servers import ROOT, find_program, wait_until

sys.path.insert(0, str(ROOT / "tests/image"))
import dockerfile  # noqa: E402

pytestmark = [pytest.mark.long, pytest.mark.needs("containers")]

JOB_SERVICES = ["data_compose", "trainer", "middleware", "server", "server_1"]
IMAGE = dockerfile.parse((ROOT / "agent/Dockerfile").read_text())[-1]
# The health checks of the servers' images call the images' busybox wget.
WGET = {"wget": shutil.which("busybox") or "busybox"}
IMAGES = {
    "prom/pushgateway": {
        "entrypoint": ["prometheus-pushgateway"],
        "programs": {"prometheus-pushgateway": find_program("prometheus-pushgateway"), **WGET},
    },
    "prom/prometheus": {"entrypoint": ["prometheus"], "programs": {"prometheus": find_program("prometheus"), **WGET}},
    "victoriametrics/victoria-metrics": {
        "entrypoint": ["victoria-metrics"],
        "programs": {"victoria-metrics": find_program("victoria-metrics"), **WGET},
    },
    "persia-metrics": {
        "health": IMAGE.last("HEALTHCHECK").command(),
        "programs": {
            "embedding_job": EMBEDDING_JOB,
            "persia-metrics-agent": AGENT,
            "persia-metrics-agentd": AGENT.with_name("persia-metrics-agentd"),
            "persia-metrics-healthcheck": ROOT / "agent/healthcheck.sh",
        },
    },
}


def resolved(name):
    """The file as docker-compose reads it, with a push each second."""
    compose = compose_file.load(name)
    for service in compose["services"].values():
        if "PERSIA_METRICS_PUSH_INTERVAL" in service.get("environment", {}):
            service["environment"]["PERSIA_METRICS_PUSH_INTERVAL"] = "1"
    return compose


@pytest.fixture
def host(started):
    directory = Path(tempfile.mkdtemp(prefix="persia-e2e-hosts-"))
    directory.chmod(0o755)  # the containers' users pass through it
    machine = Host(directory)
    started(machine)
    yield machine
    machine.stop()
    shutil.rmtree(directory)


@pytest.fixture
def start(host, started):
    """Starts services of a compose file: containers by name."""

    def all_of(compose, names, again=False):
        if not again:
            host.give_addresses(names)
        containers = {}
        for name in names:
            image = compose["services"][name]["image"].rpartition(":")[0].rpartition("localhost:5000/")[2]
            containers[name] = Container(host, compose, name, **IMAGES[image])
            started(containers[name])
        return containers

    return all_of


def wait_for_health(containers):
    """Every service that has a health check passes it."""
    for container in containers:

        def healthy(container=container):
            assert container.running(), container.output()
            code, output = container.health()
            if code != 0:
                raise ValueError(f"{code}: {output}\n{container.output()[-1000:]}")
            return True

        wait_until(healthy, f"{container.name} to be healthy", 60)


def wait_for_training(containers):
    def trains():
        ended = [name for name in JOB_SERVICES if not containers[name].running()]
        assert not ended, "\n".join(f"{name} ended:\n{containers[name].output()}" for name in ended)
        if "batches/s" not in containers["trainer"].output():
            raise ValueError({name: containers[name].output() for name in JOB_SERVICES})
        return True

    # A role that connects to an ending one may wait for its whole connect timeout, 60 s.
    wait_until(trains, "the job to train", 120)


def end_job(containers):
    """Asks one role to end, which ends the job as at the end of its time."""
    containers["data_compose"].terminate()
    for name in JOB_SERVICES:
        assert containers[name].wait(60) == 0, f"{name}:\n{containers[name].output()}"


def query(host, expression):
    answer = json.loads(host.fetch("prometheus", "9090/api/v1/query?" + urllib.parse.urlencode({"query": expression})))
    return {tuple(sorted(each["metric"].items())): float(each["value"][1]) for each in answer["data"]["result"]}


def test_compose_file_brings_the_jobs_metrics_to_prometheus(host, start):
    compose = resolved("docker-compose.yml")
    names = [name for name, service in compose["services"].items() if name != "grafana" and "profiles" not in service]
    containers = start(compose, names)
    wait_for_health([containers[name] for name in ("metrics_gateway", "prometheus", "agent", "middleware", "server", "server_1")])

    def arrived():
        seen = query(host, 'index_miss_count{job="embedding_job", role="server"}')
        replicas = {dict(labels)["instance"]: value for labels, value in seen.items()}
        return set(replicas) == {"rep_0", "rep_1"} and all(value > 0 for value in replicas.values())

    wait_for_training(containers)
    wait_until(arrived, "the servers' metrics in Prometheus", 60)
    middleware = 'lookup_rpc_time_cost_count{job="embedding_job", role="middleware"} > 0'
    wait_until(lambda: len(query(host, middleware)) == 1, "the middleware's metrics in Prometheus", 60)
    assert not query(host, '{__name__=~".+", exported_job=~".+"}'), "Prometheus scrapes without honor_labels"
    # The page that is published on the host's loopback.
    wait_until(lambda: "index_miss_count" in host.fetch("agent", "19091/metrics"), "the agent's page")
    end_job(containers)


def test_victoria_file_brings_the_jobs_metrics_to_the_database(host, start):
    compose = resolved("docker-compose.victoria.yml")
    containers = start(compose, [name for name in compose["services"] if name != "grafana"])
    wait_for_health([containers[name] for name in ("victoria", "agent")])

    def arrived():
        # The samples themselves: a query finds them half a minute later, VictoriaMetrics' default.
        path = "api/v1/export?" + urllib.parse.urlencode({"match[]": 'index_miss_count{job="embedding_job", role="server"}'})
        series = [json.loads(line) for line in host.fetch("victoria", "9090/" + path).splitlines()]
        return {each["metric"]["instance"] for each in series if each["values"][-1] > 0} == {"rep_0", "rep_1"}

    wait_until(arrived, "the servers' metrics in the database", 60)
    end_job(containers)


def test_swarm_file_gives_each_service_an_agent_of_its_own(host, start):
    compose = resolved("docker-compose.swarm.yml")
    containers = start(compose, list(compose["services"]))
    wait_for_training(containers)
    wait_for_health(containers.values())
    end_job(containers)

    # Each agent has pushed before it ended.
    seen = Samples(host.fetch("metrics_gateway", "9091/metrics"))
    for replica in (0, 1):
        assert seen.one("index_miss_count", role="server", instance=f"rep_{replica}", job="embedding_job") > 0
    assert seen.one("lookup_rpc_time_cost_count", role="middleware") > 0
    assert seen.one("embedding_job_batches_total", role="trainer") > 0
    addresses = {dict(labels)["ip_addr"] for (name, labels) in seen if name == "push_time_seconds"}
    assert addresses == {host.address(name) for name in JOB_SERVICES}, "the addresses in the services' network"


def test_a_role_that_is_lost_ends_the_others_and_all_begin_again(host, start):
    """The files' restart policies, on failure, rely on this."""
    compose = resolved("docker-compose.yml")
    assert {compose["services"][name]["restart"] for name in JOB_SERVICES} == {"on-failure:3"}
    containers = start(compose, JOB_SERVICES)
    wait_for_training(containers)
    containers["server"].kill()
    for name in JOB_SERVICES:
        assert containers[name].wait(30) != 0, f"{name} ended as if all were well:\n{containers[name].output()}"
    containers["trainer"].log.unlink()
    containers = start(compose, JOB_SERVICES, again=True)
    wait_for_training(containers)
    end_job(containers)
