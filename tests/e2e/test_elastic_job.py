"""The elastic example on a real etcd: workers die, join and hang, and the metrics equal the workers' own ledgers."""

import base64
import json
import os
import re
import shutil
import signal
import tempfile
import time
import urllib.request
from pathlib import Path

import pytest
from conftest import BUILD, Agent, Samples, environment
from elastic import JOB, ElasticJob, on_gateway
from servers import ROOT, Etcd, Gateway, Process, fetch, free_port, wait_until

STEPS = 500


class ElasticRun:
    """The results of one run of the job with all faults."""


@pytest.fixture
def etcd(tmp_path, started):
    server = Etcd(tmp_path)
    started(server)
    return server


@pytest.fixture
def elastic_job(tmp_path, segments, etcd, started):
    """Creates an elastic job of this many workers; its processes are stopped after the test."""

    def make(least, most, steps=60, step_seconds=0.0, directory=tmp_path / "job", address=etcd.address):
        directory.mkdir()
        job = ElasticJob(directory, segments, address, least, most, steps, step_seconds, environment())
        launch = job.launch

        def launch_and_end(*arguments):
            process = launch(*arguments)
            started(process)
            return process

        job.launch = launch_and_end
        return job

    return make


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Three workers; one is killed, one joins late, and rank 0 is stopped for a while and resumed. Read only."""
    directory = tmp_path_factory.mktemp("elastic")
    segments = Path(tempfile.mkdtemp(prefix="persia-e2e-", dir="/dev/shm"))
    result, launchers = ElasticRun(), []
    address = f"127.0.0.1:{free_port()}"
    try:
        with Etcd(directory) as etcd, Gateway(directory) as gateway:
            flags = [f"--job={JOB}", f"--gateway={gateway.address}", f"--metrics-dir={segments}", f"--listen={address}"]
            with Agent(["run", *flags, "--push-interval=0.5"], directory / "agent.log", environment(), address):
                job = ElasticJob(directory, segments, etcd.address, 2, 4, STEPS, 0.03, environment())
                launchers.append(job.launch(3))
                members = wait_until(lambda: job.training(3), "three workers to train")
                result.killed, result.killed_replica = members[1], replica_of(members[1])
                os.kill(result.killed, signal.SIGKILL)
                wait_until(lambda: result.killed not in job.trainers() and job.training(3), "three workers to train again")
                launchers.append(job.launch(1, 3))
                members = wait_until(lambda: job.training(4), "the one that joined to train")
                os.kill(members[0], signal.SIGSTOP)
                wait_until(lambda: job.training(3), "the others to train without the one that was stopped")
                os.kill(members[0], signal.SIGCONT)
                result.codes = [launcher.wait(90) for launcher in launchers]
                result.events = wait_until(lambda: all_events(address, "job.status.SUCCEEDED", 2), "the launchers' last events")
            result.counts, _ = on_gateway(gateway.groups())
            result.on_gateway = Samples(gateway.metrics())
            result.written = job.counts()
            result.ledgers = {path.name: path.read_text().split("\n") for path in job.ledgers.iterdir()}
            result.output = "".join(launcher.output() for launcher in launchers)
            result.checkpoint = job.checkpoint.read_bytes()
        yield result
    finally:
        for launcher in launchers:
            launcher.stop()
        shutil.rmtree(segments, ignore_errors=True)


def all_events(address, last, times):
    """The job's event records, once there are this many of the last one; else None."""
    events = json.loads(fetch(f"http://{address}/api/v1/events?limit=1000")[1])["events"]
    return events if sum(event["name"] == last for event in events) == times else None


def replica_of(pid):
    """The label `instance` of a live worker."""
    variables = dict(pair.split("=", 1) for pair in Path(f"/proc/{pid}/environ").read_text().split("\0") if pair)
    return "rep_" + variables["REPLICA_INDEX"]


def test_everybody_succeeds(run):
    assert run.codes == [0, 0], run.output[-4000:]


@pytest.mark.parametrize("what", ["rendezvous", "restart", "checkpoint"])
def test_counts_on_the_gateway_equal_the_ledgers(run, what):
    assert run.counts[what] == run.written[what] > 0


def test_the_counts_of_the_dead_stay(run):
    """Its successor has its replica, so both are in one series."""
    number = run.killed_replica.removeprefix("rep_")
    ledgers = {name: lines for name, lines in run.ledgers.items() if name.startswith(f"trainer-{number}-")}
    assert set(ledgers) > {f"trainer-{number}-{run.killed}"}
    met = run.on_gateway.one("torchelastic_rendezvous_total", role="trainer", instance=run.killed_replica, result="success")
    assert met == sum(line.startswith("rendezvous") for lines in ledgers.values() for line in lines)


def test_restarts_and_the_run_are_published_as_by_torchelastic(run):
    of_trainers = {"role": "trainer", "instance": "rep_0"}
    assert run.on_gateway.one("torchelastic_worker_group_remaining_restarts", **of_trainers) == 2
    assert run.on_gateway.one("torchelastic_worker_group_flakiness_ratio", **of_trainers) == 0.25
    results = {"restarted": "true", "result": "success"}
    assert run.on_gateway.one("torchelastic_worker_group_run_results_total", **of_trainers, **results) == 1
    assert run.on_gateway.one("torchelastic_worker_group_runs_total", **of_trainers) == 1


@pytest.mark.parametrize("part", ["train_step", "inner_train_loop", "outer_train_loop", "state_sync", "rendezvous"])
def test_durations_of_the_train_loop(run, part):
    for replica in range(4):
        assert run.on_gateway.one(f"torchelastic_{part}_duration_seconds_count", role="trainer", instance=f"rep_{replica}") > 0


def test_each_change_of_state_is_an_event_with_its_reason(run):
    by_name = {}
    for event in run.events:
        by_name.setdefault(event["name"], []).append(event["metadata"])
    failed = by_name["worker.status.FAILED"]
    assert [(one["replica"], one["reason"], one["restarts_left"]) for one in failed] == [(int(run.killed_replica[-1]), "SIGKILL", 3)]
    assert len(by_name["worker.status.HEALTHY"]) == run.written["rendezvous"]
    assert all({"rank", "world_size", "round", "reason", "worker"} <= set(one) for one in by_name["worker.status.HEALTHY"])
    assert {"start", "a worker came"} <= {one["reason"] for one in by_name["worker.status.RENDEZVOUS"]}
    assert len(by_name["job.status.SUCCEEDED"]) == 2


def test_the_result_does_not_depend_on_who_died(run, elastic_job):
    job = elastic_job(1, 1, STEPS)
    assert job.launch(1).wait(60) == 0
    assert job.checkpoint.read_bytes() == run.checkpoint


def test_the_loss_falls(run):
    loss = float(run.output.split("loss ")[1].split()[0])
    assert loss < 0.2, "ln 2 is where it begins"


def test_fewer_than_the_least_wait(elastic_job, etcd):
    job = elastic_job(2, 3)
    first = job.launch(1)
    wait_until(lambda: job.trainers(), "the first worker's ledger")
    wait_until(lambda: keys_in(etcd, "/elastic_job/") == 1, "the first worker in etcd")
    time.sleep(1)  # three times as long as the members of a round wait for others
    assert first.running() and job.counts()["rendezvous"] == 0
    second = job.launch(1, 1)
    assert (first.wait(60), second.wait(60)) == (0, 0)
    assert job.counts()["rendezvous"] >= 2
    lines = [line for path in job.ledgers.iterdir() for line in path.read_text().splitlines()]
    assert {line.split()[-1] for line in lines if line.startswith("rendezvous")} == {"2"}


def keys_in(etcd, prefix):
    """The number of keys with this prefix."""
    end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    first, last = (base64.b64encode(text.encode()).decode() for text in (prefix, end))
    request = json.dumps({"key": first, "range_end": last, "count_only": True}).encode()
    with urllib.request.urlopen(f"{etcd.url}/v3/kv/range", request, timeout=5) as answer:
        return int(json.load(answer).get("count", 0))


def test_no_more_than_the_most_train_and_a_spare_takes_the_place_of_the_dead(elastic_job, etcd):
    job = elastic_job(1, 2, 400, 0.03)
    launcher = job.launch(2)
    first_two = wait_until(lambda: job.training(2), "two workers to train")
    spare = job.launch(1, 2)
    (third,) = wait_until(lambda: set(job.trainers()) - set(first_two), "the third worker")
    wait_until(lambda: keys_in(etcd, f"/elastic_job/{JOB}/workers/") == 3, "the spare in etcd")
    os.kill(wait_until(lambda: job.training(2), "two workers to train")[1], signal.SIGKILL)
    assert (launcher.wait(60), spare.wait(60)) == (0, 0)
    lines = [line for path in job.ledgers.iterdir() for line in path.read_text().splitlines()]
    assert {line.split()[-1] for line in lines if line.startswith("rendezvous")} <= {"1", "2"}
    assert "step" in (job.ledgers / f"trainer-2-{third}").read_text()


@pytest.mark.parametrize("when", ["from the start", "under way"])
def test_a_dead_etcd_is_a_clear_error(elastic_job, etcd, when):
    job = elastic_job(1, 2, 100000, 0.02)
    # One worker: a second one, which the launcher would terminate in the middle of its exit, may print a traceback.
    job._url += "&timeout=2"
    if when == "from the start":
        etcd.stop()
        launcher = job.launch(1)
    else:
        launcher = job.launch(1)
        wait_until(lambda: job.training(1), "a worker to train")
        etcd.kill()
    assert launcher.wait(30) == 69
    assert f"elastic_job: etcd at {etcd.address} has not answered" in launcher.output()
    assert "for 2 s" in launcher.output() and "Traceback" not in launcher.output()


def test_a_job_that_lost_all_goes_on_from_its_checkpoint(elastic_job):
    job = elastic_job(1, 2, 150, 0.01)
    first = job.launch(1)
    wait_until(lambda: job.counts()["checkpoint"] >= 1, "a checkpoint")
    first.stop()
    before = json.loads(job.checkpoint.read_text())["step"]
    steps_before = job.counts()["step"]
    second = job.launch(1)
    assert second.wait(60) == 0
    assert job.counts()["step"] - steps_before == 150 - before
    assert json.loads(job.checkpoint.read_text())["step"] == 150


def test_a_wrong_url_is_refused(elastic_job):
    job = elastic_job(1, 2)
    job._url = "etcd://localhost/run?min_workers=1"
    launcher = job.launch(1)
    assert launcher.wait() == 2
    assert "'etcd://localhost/run?min_workers=1' is not of the form etcd://host:port/run_id?" in launcher.output()


def test_the_demo_shows_a_death_and_a_hang(tmp_path, started):
    """Its agent's page explains both, its Prometheus has the alert, and its last lines say where they were."""
    command = ["/usr/bin/python3", ROOT / "examples/demo", "elastic", "--workers=2", "--kill"]
    demo = Process(command, tmp_path / "demo.log", env=environment(PERSIA_BUILD_DIR=str(BUILD)))
    started(demo)

    def told(pattern):
        found = re.search(pattern, demo.output())
        if not found and not demo.running():
            raise RuntimeError(f"it ended without {pattern!r}:\n{demo.output()[-4000:]}")
        return found

    page = wait_until(lambda: told(r"(http://\S+)/   the agent"), "the page's address")[1]
    hung = wait_until(lambda: told(r"the agent's page says: Degraded, (trainer rep_\d hangs), (?:in|outside of) [\w ]+ for [\d.]+ s, in step \d+; it is stopped by a signal\."), "the hang", 90)[1]
    health = json.loads(fetch(f"{page}/api/v1/status")[1])["health"]
    assert health["state"] == "degraded" and any(reason["text"].startswith(f"{hung}, ") for reason in health["reasons"])
    events = json.loads(fetch(f"{page}/api/v1/events?type=persia.agent")[1])["events"]
    (death,) = [event["metadata"]["text"] for event in events if event["name"] == "worker_died"]
    wait_until(lambda: told(r"alert PersiaRankHung is pending: .* " + hung.removesuffix(" hangs")), "the alert")
    assert demo.wait(90) == 0, demo.output()[-4000:]
    last = demo.output().split("You should have seen:")[1]
    assert re.search(rf"\d\d:\d\d:\d\d: '{re.escape(death)}' among the events", last)
    assert re.search(rf"\d\d:\d\d:\d\d: .*Degraded and the reason '{hung}'", last)
    assert "the alert PersiaRankHung, pending" in last
    assert told("alert PersiaRankHung has ended") and "differs" not in demo.output()


def test_the_demo_compares_the_ledgers(tmp_path, started):
    demo = Process(["/usr/bin/python3", ROOT / "examples/demo", "elastic", "--workers=2", "--steps=60"], tmp_path / "demo.log", env=environment(PERSIA_BUILD_DIR=str(BUILD)))
    started(demo)
    assert demo.wait(60) == 0, demo.output()
    assert "rendezvous" in demo.output() and "differs" not in demo.output()
