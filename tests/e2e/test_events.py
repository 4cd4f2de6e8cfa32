"""The job's event records are in a file of JSON lines and at /api/v1/events, each once, even if any process is killed."""

import json

from servers import fetch, wait_until


def names(path):
    return [json.loads(line)["name"] for line in path.read_text().splitlines()] if path.exists() else []


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
    event = json.loads(file.read_text().splitlines()[-1])
    assert (event["type"], event["role"], event["instance"], event["pid"]) == ("my_app", "trainer", "rep_2", worker.pid)
    assert event["metadata"] == {"told": True}
    gateway.wait_for("persia_events_total", 1, type="my_app", event="ending")


def test_the_newest_events_are_to_be_had(job):
    agent = job.agent()
    worker = job.worker()
    for name in ("first", "second"):
        worker.tell(f"event my_app {name}")
    worker.tell("event other third")

    def ask(query=""):
        status, body = fetch(agent.url + "/api/v1/events" + query)
        assert status == 200
        return json.loads(body)["events"]

    wait_until(lambda: len(ask()) == 3, "the events")
    assert [event["name"] for event in ask("?type=my_app")] == ["first", "second"]
    assert [event["name"] for event in ask("?limit=1")] == ["third"]
    assert ask(f"?since={ask()[-1]['timestamp']}") == []
    status, refusal = fetch(agent.url + "/api/v1/events?limit=many")
    assert status == 400 and '"many" is not a number' in json.loads(refusal)["error"]
