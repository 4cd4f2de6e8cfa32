"""The shipped files find gateways and agents, keep the labels of jobs, and scrape a job by one path."""

import json
import subprocess
import tempfile
from pathlib import Path

import pytest
from conftest import PYTHON, Job
from docker_api import DockerApi, service, task
from needs import in_namespaces
from servers import wait_until
from shipped_prometheus import ShippedPrometheus

FAST = {"interval: 10s": "interval: 1s"}


@pytest.fixture
def two_jobs(tmp_path, segments, gateway, started):
    """Two jobs with a worker each: `by_agent`, which is to be scraped from its agent, and `by_gateway`. Gives both agents' addresses."""
    addresses = {}
    for name, flags in (("by_agent", ["--label=metrics_path=agent"]), ("by_gateway", [])):
        (segments / name).mkdir(mode=0o700)
        job = Job(tmp_path, segments / name, gateway, started)
        job.name = name
        addresses[name] = job.agent(*flags).address
        job.worker().tell("count my_app batches 7")
        gateway.wait_for("my_app_batches", 7, job=name)
    return addresses


def assert_one_path(prometheus):
    """Each job has all series, with its own labels, and none of the other path's."""

    def jobs(selector):
        return sorted(result["metric"]["job"] for result in prometheus.query(selector))

    wait_until(lambda: jobs("my_app_batches") == ["by_agent", "by_gateway"], "the series of both jobs")
    wait_until(lambda: jobs("push_time_seconds") == ["by_gateway"] * 2, "the push times")
    # A scrape that times out makes the series absent until the next one.
    both = wait_until(lambda: len(found := prometheus.query("my_app_batches")) == 2 and found, "both jobs")
    for result in both:
        labels, (_, value) = result["metric"], result["value"]
        assert (labels["instance"], labels["role"], labels["ip_addr"], value) == ("rep_0", "trainer", "127.0.0.1", "7")
    assert prometheus.query('{__name__=~".+", exported_job!=""} or {__name__=~".+", exported_instance!=""}') == []
    wait_until(lambda: jobs('process_start_time_seconds{role="agent"}') == ["by_agent"], "the start, which is on agents' pages only")
    wait_until(lambda: jobs("persia_process_up") == ["by_agent", "by_gateway"], "the processes of both jobs")


def label_values(prometheus, label):
    return {result["metric"][label] for result in prometheus.query("my_app_batches")}


@pytest.mark.parametrize("file", ["file_sd.yml", "static.yml"])
def test_targets_by_files_and_by_name(file, gateway, two_jobs, tmp_path, started):
    # Agents of both jobs are scraped, and both push.
    agents = '"' + '", "'.join(sorted(two_jobs.values())) + '"'
    targets = '"node_1:19091", "node_2:19091"' if file == "file_sd.yml" else '"node_1:19091"'
    prometheus = ShippedPrometheus(tmp_path, file, {**FAST, targets: agents, "metrics_gateway:9091": gateway.address})
    started(prometheus)
    assert_one_path(prometheus)
    assert [target["url"] for target in prometheus.targets("persia_gateways")] == [f"http://{gateway.address}/metrics"]
    assert [target["url"] for target in prometheus.targets("persia_agents")] == sorted(f"http://{address}/metrics" for address in two_jobs.values())
    if file == "file_sd.yml":
        wait_until(lambda: label_values(prometheus, "cluster") == {"training"}, "the label of the files")


def test_tasks_of_a_swarm_by_the_labels_of_their_services(gateway, two_jobs, tmp_path, started):
    port = {name: address.split(":")[1] for name, address in two_jobs.items()}
    services = [
        service("training_metrics_gateway", {"persia.metrics": "gateway", "persia.metrics.port": str(gateway.port)}, published=8080),
        service("other_gateway", {"persia.metrics": "gateway"}),
        service("training_agent", {"persia.metrics": "agent", "persia.metrics.port": port["by_agent"]}),
        service("second_agent", {"persia.metrics": "agent", "persia.metrics.port": port["by_gateway"]}),
        service("training_trainer", {}),
    ]
    tasks = [
        task("training_metrics_gateway", "127.0.0.1"),
        task("training_metrics_gateway", "127.0.0.61", slot=2, desired="shutdown"),
        task("training_metrics_gateway", "127.0.0.62", slot=3, state="preparing"),
        task("other_gateway", "127.0.0.63", slot=12),
        task("training_agent", "127.0.0.1", slot=0),
        task("second_agent", "127.0.0.1", slot=0),
        task("training_trainer", "127.0.0.64"),
    ]
    with DockerApi(services, tasks) as docker:
        prometheus = ShippedPrometheus(tmp_path, "dockerswarm_sd.yml", {**FAST, "unix:///var/run/docker.sock": docker.url})
        started(prometheus)
        assert_one_path(prometheus)

        def shown(job):
            return [(target["url"], target["instance"], target["stack"], target["job"]) for target in prometheus.targets(job)]

        assert shown("persia_gateways") == [
            (f"http://{gateway.address}/metrics", "training_metrics_gateway.1", "training", "persia_gateways"),
            ("http://127.0.0.63:9091/metrics", "other_gateway.12", "training", "persia_gateways"),
        ]
        assert shown("persia_agents") == sorted(
            (f"http://{two_jobs[name]}/metrics", f"{of}.host_a", "training", "persia_agents")
            for name, of in (("by_agent", "training_agent"), ("by_gateway", "second_agent"))
        )
        assert docker.asked == {f"/v1.41/{what}" for what in ("services", "tasks", "networks", "nodes")}
        wait_until(lambda: label_values(prometheus, "stack") == {"training"}, "the stack's label")


@pytest.mark.needs("namespaces")
@pytest.mark.parametrize("file, name", [("prometheus.yml", "metrics_gateway"), ("dns_sd.yml", "tasks.metrics_gateway")])
def test_two_gateways_by_their_addresses_in_dns(file, name):
    script = Path(__file__).with_name("dns_world.py")
    with tempfile.TemporaryDirectory(prefix="persia-dns-") as directory:
        done = subprocess.run(in_namespaces(PYTHON, script, directory, file, name), capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert [(target["url"], target["instance"], target["up"]) for target in found["targets"]] == [
        (f"http://{address}:9091/metrics", f"{address}:9091", "up") for address in ("127.0.0.2", "127.0.0.3")
    ]
    assert sorted((series["job"], series["instance"]) for series in found["series"]) == [
        ("job_at_127.0.0.2", "rep_0"),
        ("job_at_127.0.0.3", "rep_0"),
    ]
