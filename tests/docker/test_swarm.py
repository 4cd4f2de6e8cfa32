"""config/compose/swarm.yml on a real swarm: Prometheus finds all agents and the gateway, counts survive the end of a task, and metrics
never end the training."""

import os
import re
import time
import uuid
from datetime import datetime

import pytest
import swarm
import yaml
from engine import docker, run
from prometheus_client.parser import text_string_to_metric_families
from servers import ROOT, wait_until

FILE = "config/compose/swarm.yml"
SOCKET_FILE = "config/compose/swarm-socket.yml"
JOB = ["data_compose", "trainer", "middleware", "server", "server_1"]
SECONDS = 10
PORTS = {"metrics_gateway": ("persia_gateways", 9091), **dict.fromkeys(JOB, ("persia_agents", 19091))}


@pytest.fixture(scope="module")
def stack(images):
    """Creates stacks: stack(**environment)."""
    registry = "persia-test.invalid"
    image = images["persia-metrics-demo"]
    docker("tag", image, f"{registry}/{image}")
    made = []

    def create(**environment):
        made.append(swarm.Stack(f"persia-test-{uuid.uuid4().hex[:8]}", REGISTRY=registry, **environment))
        return made[-1]

    try:
        with swarm.one_node():
            yield create
    finally:
        for each in made:
            each.remove()
        docker("rmi", f"{registry}/{image}")


@pytest.fixture(scope="module")
def training(stack):
    """The shipped stack, with its job."""
    deployed = stack(DOCKER_GROUP=str(os.stat("/var/run/docker.sock").st_gid))
    deployed.deploy(FILE)
    return deployed


def wait_for_targets(stack):
    """Every agent and the gateway are scraped, each at its address, and nothing else is. An agent that a busy machine starts too slowly
    serves nothing, and says so."""

    def found():
        tasks = [stack.running(service) for service in PORTS]
        wanted = {("prometheus", "http://localhost:9090/metrics", "up")}
        for task in tasks:
            job, port = PORTS[task.service]
            (address,) = task.addresses
            health = "down" if "the command runs without metrics" in task.container.logs() else "up"
            wanted.add((job, f"http://{address}:{port}/metrics", health))
        seen = stack.targets()
        if seen != wanted:
            raise ValueError(f"missing: {wanted - seen}, unexpected: {seen - wanted}, tasks: {stack.tasks()}")
        return True

    wait_until(found, "the targets", 120, interval=1)


def gateway_value(stack, name, **labels):
    """The value of the only series with these labels on the gateway; 0 if it is not there yet."""
    families = text_string_to_metric_families(stack.get("metrics_gateway", "9091/metrics"))
    samples = [sample for family in families for sample in family.samples if sample.name == name]
    (value,) = [sample.value for sample in samples if labels.items() <= sample.labels.items()] or [0]
    return value


def batches(stack):
    return gateway_value(stack, "embedding_job_batches_total", job="embedding_job", role="trainer")


def test_prometheus_finds_every_task_by_its_name_in_dns(training):
    wait_for_targets(training)
    arrived = 'index_miss_count{job="embedding_job", role="server"} > 0'
    wait_until(lambda: len(training.query(arrived)) == 2, "the metrics of both servers", 60, interval=1)
    assert training.query('{__name__=~".+", exported_job!=""}') == {}


def test_prometheus_finds_every_task_by_the_labels_of_its_service(training):
    """The second file replaces Prometheus's configuration by the commands in the first one, and leaves the job alone."""
    before = {task.id for task in training.tasks() if task.service in JOB}
    for line in re.findall(r"^#   (docker service rm .*)$", (ROOT / FILE).read_text(), re.M):
        run(["sh", "-c", line.replace("persia_", f"{training.name}_")])
    training.deploy(FILE, SOCKET_FILE)
    wait_for_targets(training)
    assert len(training.query(f'up{{job=~"persia_.*", stack="{training.name}"}}')) == len(PORTS)
    assert {task.id for task in training.tasks() if task.service in JOB} == before


def test_a_task_that_is_killed_keeps_its_counts_and_is_found_again(training):
    before = wait_until(lambda: batches(training), "batches on the gateway", 60)
    killed = training.running("trainer")
    killed.container.kill()

    def trains_again():
        now = batches(training)
        assert now >= before, "the counts began again"
        return training.running("trainer").id != killed.id and now > before

    # A role that connects to an ending one may wait for its whole connect timeout, 60 s.
    wait_until(trains_again, "more batches of a new task", 120, interval=0.5)
    wait_for_targets(training)


def test_a_gateway_that_is_killed_keeps_the_groups_of_an_ended_job(training):
    for service in JOB:
        docker("service", "scale", "--detach", f"{training.name}_{service}=0")
    wait_until(lambda: "running" not in {task.state for task in training.tasks() if task.service in JOB}, "the job's end", 60)
    last, pushed = batches(training), gateway_value(training, "push_time_seconds", role="trainer")
    assert last > 0
    killed = training.running("metrics_gateway")

    def saved():
        _, changed, _ = killed.container.exec("stat", "-c", "%Y", "/pushgateway/metrics")
        # The file's time is in whole seconds. If that save preceded the push, another follows within 15 seconds.
        return int(changed) > pushed or (int(changed) == int(pushed) and time.time() > pushed + 30)

    wait_until(saved, "the gateway's file with the last push", 60, interval=0.5)
    killed.container.kill()
    wait_until(lambda: training.running("metrics_gateway").id != killed.id, "a new gateway", 60, interval=0.5)
    assert wait_until(lambda: batches(training), "the job's last values") == last


# Takes the agent's port, and starts the agent then.
TAKE_PORT = """
perl -MIO::Socket::INET -e '$$s = IO::Socket::INET->new(LocalPort => 19091, Listen => 5) or die; sleep' &
until grep -q ":4A93 [0-9A-F:]* 0A" /proc/net/tcp; do :; done
exec persia-metrics-agent "$$@"
"""


def short_job(path, entrypoint):
    """Writes a second file for a job of SECONDS, whose roles wait for each other as long as a busy machine takes to start them."""
    given, services = yaml.safe_load((ROOT / FILE).read_text())["services"], {}
    for name in JOB:
        command = given[name]["command"].replace("--duration 600", f"--duration {SECONDS}")
        services[name] = {"command": f"{command} --connect-timeout 300", **({"entrypoint": entrypoint} if entrypoint else {})}
    assert f"--duration {SECONDS}" in services["data_compose"]["command"]
    path.write_text(yaml.safe_dump({"version": "3.8", "services": services}))
    return path


@pytest.fixture(scope="module")
def two_jobs_without_metrics(stack, training, tmp_path_factory):
    """Stacks with disabled metrics, and with agents whose port is taken."""
    training.remove()
    folder = tmp_path_factory.mktemp("files")
    disabled, taken = stack(PERSIA_METRICS_ENABLED="0"), stack()
    disabled.deploy(FILE, short_job(folder / "disabled.yml", None))
    taken.deploy(FILE, short_job(folder / "taken.yml", ["sh", "-c", TAKE_PORT, "sh"]))
    return {"disabled": disabled, "taken": taken}


@pytest.mark.parametrize("which", ["disabled", "taken"])
def test_a_job_without_metrics_is_trained_to_its_end_in_its_first_tasks(two_jobs_without_metrics, which):
    stack = two_jobs_without_metrics[which]

    def ended():
        tasks = [task for task in stack.tasks() if task.service in JOB]
        if not all(task.state in ("complete", "failed", "rejected") for task in tasks):
            raise ValueError(tasks)
        return tasks

    tasks = wait_until(ended, "the job's end", 300, 0.5)
    assert sorted((task.service, task.state, task.exit_code) for task in tasks) == [(name, "complete", 0) for name in sorted(JOB)]
    for task in tasks:
        # Swarm would end the task of a container that is unhealthy.
        assert "Healthcheck" not in task.container.inspect()["Config"], task.service
    # Nor did anything else end the job early.
    (loader,) = [task.container.state() for task in tasks if task.service == "data_compose"]
    began, end = (datetime.fromisoformat(loader[at][:19]) for at in ("StartedAt", "FinishedAt"))
    assert (end - began).total_seconds() >= SECONDS - 1
    if which == "disabled":
        # The gateway may still be starting.
        wait_until(lambda: batches(stack) == 0, "a gateway without values of the job", 60, 0.5)
