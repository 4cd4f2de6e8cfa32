"""Features that Debian 12's Prometheus lacks: a current one stores when counts began, and its promtool knows Kubernetes."""

import math
import subprocess

import pytest
from servers import fetch, find_program, wait_until
from shipped_prometheus import CONFIG

pytestmark = pytest.mark.current

# A sample of 0 where a count began, or that time with each sample, which is to replace it.
STARTS = {"zeros": ["created-timestamp-zero-ingestion"], "starts": ["st-storage", "use-start-timestamps"]}
COUNTED = {
    "my_app_batches": 7,
    "my_app_fractions": 0.5,
    'my_app_misses{feat="a"}': 2,
    "my_app_latency_count": 1,
    "my_app_latency_sum": 0.3,
    'my_app_latency_bucket{le="+Inf"}': 1,
    'my_app_latency_bucket{le="0.1"}': 0,
}


def count(worker):
    worker.tell("count my_app batches 7")
    worker.tell("count my_app fractions 0.5")
    worker.tell("observe my_app latency 0.3")
    worker.tell("count_feat my_app misses a 2")


def delete_groups(gateway):
    for group in gateway.groups():
        labels = dict(group["labels"])
        path = "".join(f"/{name}/{value}" for name, value in [("job", labels.pop("job")), *labels.items()])
        assert fetch(f"http://{gateway.address}/metrics{path}", method="DELETE")[0] == 202
    wait_until(lambda: gateway.groups() == [], "the end of all groups")


def wait_for_increase(server, times):
    for selector, counted in COUNTED.items():

        def increase(selector=selector, counted=counted):
            (last,) = server.query(f"max_over_time(timestamp({selector})[1m:1s])")
            (found,) = server.query(f"increase({selector}[5m] @ {last['value'][1]})")
            if not math.isclose(float(found["value"][1]), times * counted):
                raise ValueError(found["value"][1])
            return True

        wait_until(increase, f"the increase of {selector}")


@pytest.mark.parametrize("features", STARTS.values(), ids=STARTS)
def test_the_increase_over_processes_shorter_than_a_scrape_interval_is_what_they_counted(features, job, prometheus):
    """The later ones continue the counts of the first."""
    agent = job.agent("--gateway=off")
    server = prometheus(agent.address, features=features)
    wait_until(lambda: server.query("persia_agent_series"), "a scrape without the worker")
    for times in (1, 2, 3):
        worker = job.worker()
        count(worker)
        assert worker.leave() == 0
        wait_until(lambda times=times: agent.metrics().one("persia_agent_retired_processes_total") == times, "the worker's end")
        wait_for_increase(server, times)


@pytest.mark.parametrize("features", STARTS.values(), ids=STARTS)
def test_the_increase_over_jobs_that_push_the_same_counts_is_their_sum(features, job, gateway, prometheus):
    """Each job's group is gone before the next job begins: a sample after that would leave no place for its zero."""
    server = prometheus(gateway.address, features=features)
    for times in (1, 2, 3):
        agent = job.exec_worker("--push-interval=60")
        count(agent)
        assert agent.leave() == 0
        wait_for_increase(server, times)
        delete_groups(gateway)
        wait_until(lambda: server.query("my_app_batches") == [], "the end of the series")


def promtool(*arguments):
    result = subprocess.run([find_program("promtool"), *arguments], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("file", sorted(CONFIG.glob("*.yml")), ids=lambda path: path.name)
def test_shipped_file_passes_all_checks(file):
    promtool("check", "config", "--lint=all", "--lint-fatal", file)


@pytest.mark.parametrize("file", sorted(CONFIG.glob("rules/**/*.yml")), ids=lambda path: path.name)
def test_rules_pass_all_checks(file):
    promtool("check", "rules", "--lint=all", "--lint-fatal", file)
