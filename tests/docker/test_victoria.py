"""config/compose/victoria.yml. One project serves all tests, in their order."""

import json
import time
import urllib.parse

import pytest
from engine import docker
from job import JOB, NAMES, ROLES, CountedJob
from servers import fetch, wait_until

def exported(stack, selector):
    """All stored samples: [{metric, values, timestamps}]. A query would not see the last half minute."""
    url = stack.url("victoria", 9090)
    fetch(url + "/internal/force_flush")
    status, body = fetch(url + "/api/v1/export?" + urllib.parse.urlencode({"match[]": selector}), timeout=30)
    if status != 200:
        raise ConnectionError(f"{status}: {body[:300]}")
    return [json.loads(line) for line in body.splitlines()]


def last(stack, name, role, replica, labels):
    """The last sample of a series."""
    more = "".join(f", {key}={json.dumps(value)}" for key, value in labels.items())
    found = exported(stack, f'{name}{{job="{JOB}", role="{role}", instance="rep_{replica}"{more}}}')
    pairs = [pair for series in found for pair in zip(series["timestamps"], series["values"])]
    return max(pair for pair in pairs if pair[1] is not None)[1]  # null is a stale marker


def newest(stack):
    series = exported(stack, f'embedding_job_batches_total{{job="{JOB}"}}')
    return max((each["timestamps"][-1] for each in series), default=0) / 1000


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    return CountedJob(tmp_path_factory.mktemp("victoria") / "reports")


@pytest.fixture(scope="module")
def stack(project, job):
    stack = project("config/compose/victoria.yml", job.file())
    stack.up()
    return stack


def wait_for_new_samples(stack):
    now = time.time()
    wait_until(lambda: newest(stack) > now, "samples of now in the database", 60, interval=0.5)


def test_every_service_is_healthy(stack):
    for service in ("agent", "victoria", "middleware", "server", "server_1"):
        stack.container(service).wait_healthy()


def test_all_persia_metrics_arrive(stack):
    def missing():
        seen = {each["metric"]["__name__"] for each in exported(stack, f'{{job="{JOB}"}}')}
        return [name for name in NAMES if not seen & {name, name + "_count"}]

    wait_until(lambda: not missing(), "all metrics of the Persia tables in the database", 60, interval=1)


def test_samples_wait_while_the_database_is_down(stack):
    victoria = stack.container("victoria")
    down = time.time()
    # A killed database would lose samples of its last seconds that it had only in memory.
    victoria.stop()
    assert victoria.exit_code() == 0
    wait_until(lambda: waiting(stack) > 0 and time.time() > down + 20, "samples in the agent's queue", 60, interval=0.5)
    victoria.start()
    wait_for_new_samples(stack)
    times = sorted(when / 1000 for each in exported(stack, f'embedding_job_batches_total{{job="{JOB}"}}') for when in each["timestamps"])
    gaps = [after - before for before, after in zip(times, times[1:]) if after > down - 30]
    assert gaps and max(gaps) < 9.5, "a collection each 5 s"


def waiting(stack):
    text = fetch(stack.url("agent", 19091) + "/metrics")[1]
    return sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith("persia_agent_remote_write_pending_samples"))


def test_a_killed_agent_continues(stack):
    agent = stack.container("agent")
    agent.kill()
    agent.start()
    wait_for_new_samples(stack)


def test_no_count_is_lost_or_doubled(stack, job):
    trained = "embedding_job_batches_total", "trainer", 0, {}
    stack.down()
    stack.up()
    wait_for_new_samples(stack)  # of the agent, which has the former count
    before = last(stack, *trained)
    wait_until(lambda: last(stack, *trained) > before, "more batches in the database", 120, interval=0.5)
    docker("kill", "--signal=TERM", stack.container("data_compose").id)
    for service in ROLES:
        container = stack.container(service)
        assert container.wait() == 0, container.logs()
    ended = time.time()
    wait_until(lambda: newest(stack) > ended + 1, "samples after the job's end", 60, interval=0.5)
    for metric in job.report()["metrics"]:
        where = metric["role"], metric["replica"], metric["labels"]
        if metric["type"] == "counter":
            assert last(stack, metric["name"], *where) == metric["value"], metric
        elif metric["type"] == "time_cost":
            assert last(stack, metric["name"] + "_count", *where) == metric["count"], metric
    for series in exported(stack, f'{{job="{JOB}"}}'):
        assert len(series["timestamps"]) == len(set(series["timestamps"])), series["metric"]
