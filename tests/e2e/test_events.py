"""The job's event records are in a file of JSON lines and at /api/v1/events, each once, even if any process is killed."""

import json
import signal

import pytest
from servers import fetch, wait_until


def records(path, of_agent=False):
    """The records of the workers, or those of the agent."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [record for record in map(json.loads, lines) if (record["type"] == "persia.agent") == of_agent]


def names(path):
    return [record["name"] for record in records(path)]


def test_events_are_written_once_over_restarts_of_the_agent(job, gateway, tmp_path):
    file = tmp_path / "events.jsonl"
    agent = job.agent(f"--events-file={file}")
    worker = job.worker(replica=2)
    worker.tell("event my_app started")
    wait_until(lambda: names(file) == ["started"], "the first event")
    worker.tell("count my_app steps 1")
    gateway.wait_for("my_app_steps", 1)  # by then the agent has saved its position
    agent.kill()
    worker.tell("event my_app saved")
    agent = job.agent(f"--events-file={file}")
    wait_until(lambda: names(file) == ["started", "saved"], "the event of meanwhile")
    worker.tell("event my_app ending")
    worker.leave()
    wait_until(lambda: names(file) == ["started", "saved", "ending"], "the last event of a process that ended")
    event = records(file)[-1]
    assert (event["type"], event["role"], event["instance"], event["pid"]) == ("my_app", "trainer", "rep_2", worker.pid)
    assert event["metadata"] == {"told": True}
    gateway.wait_for("persia_events_total", 1, type="my_app", event="ending")


@pytest.mark.parametrize("mode", ["exec", "run"])
def test_a_rotated_file_is_left(job, tmp_path, mode):
    file, aside = tmp_path / "events.jsonl", tmp_path / "events.1"
    flag = f"--events-file={file}"
    agent = job.exec_worker(flag) if mode == "exec" else job.agent(flag)
    worker = agent if mode == "exec" else job.worker()
    worker.tell("event my_app started")
    wait_until(lambda: names(file) == ["started"], "the first event")
    file.rename(aside)
    if mode == "run":
        agent.signal(signal.SIGHUP)  # as logrotate does; it is not needed
    worker.tell("event my_app saved")
    wait_until(lambda: names(file) == ["saved"], "the event in a new file")
    assert names(aside) == ["started"]
    file.unlink()
    worker.tell("event my_app ending")
    wait_until(lambda: names(file) == ["ending"], "the event in a new file after a deletion")


def test_stdout_takes_events_of_run_and_is_the_commands_under_exec(job):
    agent = job.agent("--events-file=-")
    worker = job.worker()
    worker.tell("count my_app batches 1")
    worker.leave()
    wait_until(lambda: '"name": "worker_exited"' in agent.output(), "the event")
    agent.signal(signal.SIGTERM)
    assert agent.wait() == 0

    exec_ = job.exec("echo", "hello", flags=["--events-file=-"])
    assert exec_.wait() == 0
    refused = 'events_file: "-" is stdout, which the command of exec has to itself; name a file; events are not written'
    assert refused in exec_.output() and "hello" in exec_.output()
    assert job.exec("echo", "hello", flags=["--events-file=-", "--strict"]).wait() == 125


def test_the_newest_events_are_to_be_had(job):
    agent = job.agent()
    worker = job.worker()
    for name in ("first", "second"):
        worker.tell(f"event my_app {name}")
    worker.tell("event other third")

    def ask(query=""):
        status, body = fetch(agent.url + "/api/v1/events" + query)
        assert status == 200
        return [event for event in json.loads(body)["events"] if event["type"] != "persia.agent"]

    wait_until(lambda: len(ask()) == 3, "the events")
    assert [event["name"] for event in ask("?type=my_app&limit=1")] == ["second"]
    status, refusal = fetch(agent.url + "/api/v1/events?limit=many")
    assert status == 400 and '"many" is not a number' in json.loads(refusal)["error"]


def test_the_agent_reports_what_happens_to_workers(job, tmp_path):
    file = tmp_path / "events.jsonl"
    agent = job.agent(f"--events-file={file}", "--hang-after=1")
    wait_until(lambda: agent.metrics().one("persia_job_hung") == 0, "the agent's first collection")
    worker, other = job.worker(), job.worker(replica=1)
    for each in (worker, other):
        each.tell("busy my_app steps_total")

    def seen(replica=0):
        return [record["name"] for record in records(file, of_agent=True) if record.get("instance") == f"rep_{replica}"]

    def status():
        return json.loads(fetch(agent.url + "/api/v1/status")[1])

    def health():
        return status()["health"]

    def is_judged(one):  # from the third change on, which is at least a push interval after the second one, when it is called running
        return one["state"] == "running" and one["last_change_ms"] - one["state_since_ms"] > 500

    wait_until(lambda: [is_judged(each) for each in status()["workers"]] == [True, True], "both to be judged")
    assert seen()[0] == "worker_started"
    worker.signal(signal.SIGSTOP)
    wait_until(lambda: seen()[-1] == "worker_hung" and health()["state"] == "degraded", "the hang")
    (reason,) = health()["reasons"]
    assert (reason["kind"], reason["instance"], reason["headline"]) == ("hung", "rep_0", "trainer rep_0 hangs; it is stopped by a signal")
    assert reason["text"].endswith(f" signal. Look at: the sender of the signal; kill -CONT {worker.pid} lets it go on.")
    wait_until(lambda: agent.metrics().one("persia_process_hung", instance="rep_0", process="0") == 1, "the metric")
    worker.signal(signal.SIGCONT)
    wait_until(lambda: seen()[-1] == "worker_recovered" and health()["state"] == "running", "the recovery")
    other.signal(signal.SIGSTOP)
    worker.signal(signal.SIGSTOP)
    wait_until(lambda: health()["state"] == "hung" and agent.metrics().one("persia_job_hung") == 1, "the job's hang")
    for each in (worker, other):
        each.signal(signal.SIGCONT)
    wait_until(lambda: health()["state"] == "running", "the job to go on")
    worker.kill()
    wait_until(lambda: seen()[-1] == "worker_died" and health()["state"] == "degraded", "the death")
    job.worker()
    wait_until(lambda: seen()[-1] == "worker_restarted" and health()["state"] == "running", "the replacement")
    assert other.leave() == 0
    wait_until(lambda: seen(1)[-1] == "worker_exited", "the exit")
    names_of_job = [record["name"] for record in records(file, of_agent=True) if record["name"].startswith("job")]
    assert names_of_job[:2] == ["job_hung", "job_recovered"]


def test_a_restarted_agent_keeps_a_hang_a_death_and_their_times(job, tmp_path):
    file = tmp_path / "events.jsonl"
    agent = job.agent(f"--events-file={file}", "--hang-after=1")
    ranks = [job.worker(replica=replica) for replica in range(3)]
    for rank in ranks:
        rank.tell("busy my_app steps_total")

    def health():
        return json.loads(fetch(agent.url + "/api/v1/status")[1])["health"]

    def states():
        return [each["state"] for each in json.loads(fetch(agent.url + "/api/v1/status")[1])["workers"]]

    wait_until(lambda: states() == 3 * ["running"], "all to be judged")
    assert wait_until(lambda: agent.metrics().one("persia_job_throughput", counter="my_app_steps_total"), "the throughput") > 0
    wait_until(lambda: agent.metrics().one("persia_job_unchanged_seconds") < 1, "a count that is not old")
    ranks[0].signal(signal.SIGSTOP)
    ranks[1].kill()
    wait_until(lambda: states() == ["hung", "died", "running"], "the hang and the death")
    before = health()["reasons"]
    wait_until(lambda: agent.metrics().one("persia_process_hung", instance="rep_0") == 1, "the metric")
    agent.await_collections(2)  # the state is on disk
    agent.kill()
    agent = job.agent(f"--events-file={file}", "--hang-after=1")
    wait_until(lambda: states()[:2] == ["hung", "died"], "the next agent's view")
    for old, new in zip(before, health()["reasons"], strict=True):
        assert {**old, "since_ms": 0} == {**new, "since_ms": 0} and abs(old["since_ms"] - new["since_ms"]) < 100
    ranks[0].signal(signal.SIGCONT)
    job.worker(replica=1)
    wait_until(lambda: health()["state"] == "running", "both to go on")
    names = [record["name"] for record in records(file, of_agent=True) if record.get("instance") == "rep_0"]
    assert [name for name in names if name != "worker_started"] == ["worker_hung", "worker_recovered"], "nothing is reported twice"
