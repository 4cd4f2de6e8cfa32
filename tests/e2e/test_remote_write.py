"""Remote write to a strict receiver: the samples that arrive, through outages, kills and reloads."""

import json
import signal
import time

import pytest
from remote_write_databases import now_ms
from remote_write_receiver import RESET, SILENCE, status
from servers import wait_until
from test_metrics_table import shown, table

def settings(tmp_path, *targets, **others):
    """A file with these targets, each a map. Unless they say so, they get no metadata, so that a test counts requests with samples; and
    an agent that ends has a minute for what a busy machine has left unsent."""
    targets = [{"metadata_config": {"send": False}, **target} for target in targets]
    path = tmp_path / "remote.yaml"
    # JSON is YAML.
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps({"PersiaMetricsConfig": {"push_timeout_seconds": 60, "remote_write": targets, **others}}))
    draft.rename(path)
    return f"--config={path}"


def wait_for(receiver, name, value, seconds=60, **labels):
    wait_until(lambda: receiver.last(name, **labels) == value or None, f"{name} {value} at the receiver", seconds)


def sent(agent, family="samples_total", **labels):
    """The sum of the agent's series with these labels, or None."""
    name = f"persia_agent_remote_write_{family}"
    found = [value for (other, have), value in agent.metrics().items() if other == name and labels.items() <= dict(have).items()]
    return sum(found) if found else None


def end(agent, *receivers):
    """Waits until these have caught up, and the agent has sent the rest."""
    for receiver in receivers:
        receiver.catch_up()
    agent.signal(signal.SIGTERM)
    assert agent.wait(90) == 0, agent.output()[-4000:]


def test_names_labels_and_values_are_those_of_the_gateway(receiver, job, gateway):
    agent = job.agent(f"--remote-write={receiver.url}", "--label=team=ads")
    worker = job.worker(role="trainer", replica=3)
    worker.tell("count my_app batches 7")
    worker.tell("set my_app loss 0.25")
    worker.tell("count_feat my_app misses user_id 3")
    for seconds in (0.002, 0.3, 70):
        worker.tell(f"observe my_app latency {seconds}")
    wait_for(receiver, "my_app_latency_count", 3)
    gateway.wait_for("my_app_latency_count", 3)
    pushed = {(name, labels): value for (name, labels), value in gateway.metrics().items() if name.startswith("my_app_")}
    assert len(pushed) > 10
    arrived = {}
    for labels in list(receiver.samples):
        labels = dict(labels)
        name = labels.pop("__name__")
        if name.startswith("my_app_"):
            arrived[name, frozenset(labels.items())] = receiver.last(name, **labels)
    assert arrived == pushed
    assert receiver.series("my_app_loss", instance="rep_3", role="trainer", team="ads", job=job.name)
    times = [at for at, _ in receiver.series("persia_agent_series")]
    assert times == sorted(set(times))
    wait_until(lambda: sent(agent) > 100, "its own count")
    assert receiver.errors == []


def test_own_metrics_are_in_the_table(receiver, job):
    agent = job.agent(f"--remote-write={receiver.url}")
    wait_until(lambda: sent(agent) > 0, "samples that were sent")
    families = {name: about for name, about in shown(agent.metrics().text).items() if "remote_write" in name}
    rows = {name: about for name, about in table().items() if "remote_write" in name}
    assert families == rows


def test_series_that_went_while_no_agent_was_there_get_a_marker(receiver, job):
    agent = job.agent(f"--remote-write={receiver.url}", "--label=version=1")
    wait_until(lambda: receiver.series("persia_agent_series", version="1"), "a first sample")
    agent.kill()
    job.agent(f"--remote-write={receiver.url}", "--label=version=2")
    wait_until(lambda: receiver.series("persia_agent_series", version="1")[-1][1] is None, "the end of the former series")
    assert receiver.last("persia_agent_series", version="2") is not None
    assert receiver.errors == []


@pytest.mark.parametrize("end", ["keep", "delete"])
def test_the_last_values_arrive_and_series_end_if_the_job_is_to_leave_nothing(receiver, job, end):
    agent = job.exec_worker(f"--remote-write={receiver.url}", f"--on-job-end={end}", "--push-interval=60")
    agent.tell("count my_app batches 41")
    agent.tell("count my_app batches 1")
    assert agent.leave() == 0
    values = [value for _, value in receiver.series("my_app_batches")]
    assert values[-2:] == [42.0, None] if end == "delete" else values[-1] == 42.0
    assert receiver.series("persia_exec_exit_code")[-1 if end == "keep" else -2][1] == 0
    assert receiver.errors == []


def test_what_waits_is_shown_by_its_age(receiver, job, tmp_path):
    receiver.faults.extend([status(401)] * 1000)
    agent = job.agent(settings(tmp_path, {"url": receiver.url, "name": "db"}))
    wait_until(lambda: (sent(agent, "requests_total", target="db", status="401") or 0) > 2, "refusals")
    wait_until(lambda: sent(agent, "pending_samples", target="db") > 0, "samples that wait")
    oldest = sent(agent, "oldest_pending_timestamp_seconds", target="db")
    wait_until(lambda: time.time() - sent(agent, "oldest_pending_timestamp_seconds", target="db") > 3, "the age to grow")
    assert sent(agent, "oldest_pending_timestamp_seconds", target="db") == oldest
    assert sent(agent, "pending_samples", target="db") > 0


def test_a_request_that_is_refused_is_dropped_and_said_once(receiver, job, tmp_path):
    receiver.faults.extend([status(400)] * 3)
    agent = job.agent(settings(tmp_path, {"url": receiver.url, "name": "db"}))
    wait_until(lambda: sent(agent, "samples_failed_total", target="db") > 0 and receiver.samples, "a request after those")
    wait_until(lambda: sent(agent) > 0, "samples that were taken")
    assert sent(agent, "retries_total") == 0
    assert agent.output().count("status 400: a fault of the test") == 1
    assert receiver.errors == []


def test_headers_are_as_told(receiver, job, tmp_path):
    agent = job.agent(settings(tmp_path, {"url": receiver.url, "headers": {"X-Scope-OrgID": "team"}, "authorization": {"credentials": "hunter2"}}))
    wait_until(lambda: receiver.samples, "samples")
    assert (receiver.headers["X-Scope-OrgID"], receiver.headers["Authorization"]) == ("team", "Bearer hunter2")
    assert "hunter2" not in agent.output()


def timestamps(receiver):
    return [at for at, _ in receiver.series("persia_agent_series")]


def test_an_outage_and_kills_lose_nothing(receivers, job, tmp_path):
    """After an outage a target gets the same samples as one without an outage, even if the agent was killed."""
    well, away = receivers().start(), receivers()
    targets = [{"url": receiver.url, "name": name} for name, receiver in (("well", well), ("away", away))]
    config = settings(tmp_path, *targets)
    state = tmp_path / "state"
    state.mkdir()
    worker = job.worker()
    kills = 3
    for i in range(kills):
        before = len(timestamps(well))
        agent = job.agent(config, f"--state-dir={state}", "--push-interval=0.3")
        worker.tell("busy my_app steps") if i == 0 else worker.tell("count my_app rounds 1")
        wait_until(lambda before=before: len(timestamps(well)) > before + 8, "collections")
        agent.kill()
    assert away.samples == {}
    away.faults.extend([status(500), SILENCE, status(503), RESET])  # it fails at first when it returns
    away.start()
    agent = job.agent(settings(tmp_path, targets[0], {**targets[1], "remote_timeout": "3s"}), f"--state-dir={state}")
    # The other target's samples now; it receives more meanwhile.
    newest = wait_until(lambda: timestamps(well)[-1], "the newest collection")
    wait_until(lambda: timestamps(away)[-1:] >= [newest], "the target to catch up", 60)
    end(agent, well, away)
    one, other = set(timestamps(well)), set(timestamps(away))
    # A kill may come when one of them has the newest collection on disk and the other has not.
    assert len(one ^ other) <= kills, (len(one), len(other))
    assert len(one) > 9 * kills
    for labels, samples in away.samples.items():
        times = [at for at, _ in samples]
        assert times == sorted(set(times)), labels
        expected = [sample for sample in well.samples[labels] if sample[0] in other]
        assert [sample for sample in samples if sample[0] in one] == expected, labels
    assert (well.errors, away.errors) == ([], [])
    assert "samples of an earlier agent" in agent.output()


def test_a_reload_adds_changes_and_removes_targets(receivers, job, tmp_path):
    first, second = receivers().start(), receivers().start()
    config = settings(tmp_path, {"url": first.url, "name": "db"})
    agent = job.agent(config)
    wait_until(lambda: first.samples, "the first target")
    settings(tmp_path, {"url": second.url, "name": "db"}, {"url": first.url, "name": "other", "send_interval_seconds": 60})
    agent.signal(signal.SIGHUP)
    wait_until(lambda: second.samples, "the second target")
    wait_until(lambda: (sent(agent, target="other") or 0) > 0, "the first one under its new name")
    settings(tmp_path)
    agent.signal(signal.SIGHUP)
    wait_until(lambda: agent.output().count("a target that is missing in the settings") >= 2, "the warnings of unused queues")
    left = now_ms()
    worker = job.worker()
    worker.tell("count my_app batches 1")
    wait_until(lambda: agent.metrics().one("my_app_batches") == 1, "a collection")
    assert max(timestamps(second)) <= left  # samples in flight may arrive later
    assert (first.errors, second.errors) == ([], [])
