"""Remote write to a strict receiver with faults: no sample is lost, and none is sent again without need."""

import email.utils
import math
import os
import re
import time

import pytest
from remote_write_receiver import CUT_ANSWER, CUT_STATUS, HALF_CLOSE, IDLE_HALF_CLOSE, RESET, SILENCE, SlowAnswer, SlowRead, status
from servers import wait_until
from test_remote_write import end, sent, settings, wait_for
from test_seed import seed

TROUBLE_COLLECTIONS = int(os.environ.get("PERSIA_TEST_TROUBLE_COLLECTIONS", "8"))  # of 0.3 s each
FAULTS = [status(500), HALF_CLOSE, CUT_STATUS, CUT_ANSWER, RESET, SILENCE]


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_what_meets_a_fault_is_sent_again(receivers, job, tmp_path, fault):
    well, receiver = receivers().start(), receivers().start()
    receiver.faults.extend([fault, fault])
    targets = [{"url": well.url, "name": "well"}, {"url": receiver.url, "name": "db", "remote_timeout": "3s" if fault == SILENCE else "30s"}]
    agent = job.agent(settings(tmp_path, *targets))
    worker = job.worker()
    worker.tell("count my_app batches 5")
    wait_for(receiver, "my_app_batches", 5)
    wait_until(lambda: receiver.met == [fault, fault], "both faults")
    wait_until(lambda: sent(agent, "retries_total", target="db") >= 2, "the retries to be shown")
    if fault != SILENCE:  # with the short timeout, a busy machine has more
        assert sent(agent, "retries_total", target="db") == 2
    assert sent(agent, "samples_failed_total", target="db") == 0
    end(agent, well, receiver)
    assert receiver.all() == well.all()
    if fault != SILENCE:
        assert (receiver.replays > 0) == (fault in (CUT_STATUS, CUT_ANSWER)), "what was taken comes again, and nothing else"
    if fault in (HALF_CLOSE, CUT_STATUS, CUT_ANSWER):
        # The receiver waits for the agent, but the agent does not wait.
        wait_until(lambda: [visit.late for visit in receiver.visits[:2]] == [0, 0] or None, "the agent to close its side")
    assert (receiver.errors, well.errors) == ([], [])


def test_a_kept_connection_that_is_half_closed_costs_nothing(receivers, job, tmp_path):
    """A fault between two requests: none is lost or sent twice, because the first was answered and the second not read."""
    well, receiver = receivers().start(), receivers().start()
    times = 5
    receiver.faults.extend([None, IDLE_HALF_CLOSE] * times)
    targets = [{"url": well.url, "name": "well"}, {"url": receiver.url, "name": "db"}]
    agent = job.agent(settings(tmp_path, *targets))
    job.worker().tell("busy my_app steps")
    wait_until(lambda: len(receiver.visits) > 2 * times + 3, "requests after those")
    assert receiver.met == [IDLE_HALF_CLOSE] * times
    wait_until(lambda: sent(agent, "highest_sent_timestamp_seconds", target="db") > 0, "its own count")
    assert sent(agent, "retries_total", target="db") == 0
    end(agent, well, receiver)
    assert receiver.all() == well.all()
    assert (receiver.replays, receiver.errors) == (0, [])
    # Each fault ended one connection, and nothing else.
    assert receiver.connections == times + 1


@pytest.mark.parametrize("fault", [HALF_CLOSE, CUT_STATUS, CUT_ANSWER, RESET], ids=str)
def test_a_fault_on_a_connection_that_was_used_loses_nothing(receivers, job, tmp_path, fault):
    """In these cases libcurl itself may retry."""
    well, receiver = receivers().start(), receivers().start()
    receiver.faults.extend([None, None, fault, None, fault])
    targets = [{"url": well.url, "name": "well"}, {"url": receiver.url, "name": "db"}]
    agent = job.agent(settings(tmp_path, *targets))
    wait_until(lambda: len(receiver.visits) > 8, "requests after those")
    assert receiver.met == [fault, fault]
    end(agent, well, receiver)
    assert receiver.all() == well.all()
    assert (receiver.replays > 0) == (fault in (CUT_STATUS, CUT_ANSWER)), "what was taken comes again, and nothing else"
    assert receiver.errors == []


@pytest.mark.parametrize("code, form", [(429, "seconds"), (503, "date")])
def test_a_target_that_asks_to_be_left_alone_is(receiver, job, tmp_path, code, form):
    ask = 3
    asked_until = []

    def date():
        asked_until.append(math.ceil(time.time()) + ask)
        return email.utils.formatdate(asked_until[0], usegmt=True)

    receiver.faults.append(status(code, retry_after=ask if form == "seconds" else date))
    agent = job.agent(settings(tmp_path, {"url": receiver.url, "name": "db"}))
    job.worker().tell("count my_app batches 5")
    wait_for(receiver, "my_app_batches", 5)
    first, second = receiver.visits[:2]
    assert first.fault is not None and second.fault is None
    if form == "seconds":
        assert second.arrived - first.answering >= ask
    else:
        assert second.arrived_at >= asked_until[0]
    wait_until(lambda: sent(agent, "retries_total", target="db") == 1 or None, "the retry to be shown")
    assert receiver.errors == []


@pytest.mark.timeout(600 + 3 * TROUBLE_COLLECTIONS)
def test_a_target_in_each_kind_of_trouble_by_turns_gets_every_sample_in_order(receivers, job, tmp_path):
    """Each for some seconds and some collections, as when operators look for the cause. `./run night outages` does it for a minute each."""
    well, receiver = receivers().start(), receivers().start()
    elsewhere = receivers().start()
    redirect = status(307, location=elsewhere.url.replace("127.0.0.1", "localhost"))
    queue = {"max_backoff": "500ms"}
    targets = [{"url": well.url, "name": "well"}, {"url": receiver.url, "name": "db", "queue_config": queue}]
    worker = job.worker()
    worker.tell("busy my_app steps")
    agent = job.agent(settings(tmp_path, *targets), "--push-interval=0.3")
    wait_until(lambda: receiver.samples, "first samples")
    for trouble in (status(401), status(404), status(403), redirect, status(500), SlowAnswer(1), status(401)):
        receiver.trouble = trouble
        met, collections = len(receiver.met), len(well.series("persia_agent_series"))
        wait_until(lambda met=met: len(receiver.met) >= met + 3, f"requests that meet {trouble}")
        wait_until(lambda n=collections: len(well.series("persia_agent_series")) >= n + TROUBLE_COLLECTIONS, "collections", 30 + TROUBLE_COLLECTIONS)
    receiver.trouble = None
    end(agent, well, receiver)
    assert elsewhere.visits == []
    assert receiver.all() == well.all()
    assert (receiver.replays, receiver.errors, well.errors) == (0, [], [])
    assert agent.output().count("db accepts samples again") == 2, "after the redirect, the slow answers, and at the end"
    for words in ("status 401", "status 404", "status 403", "status 307: it redirects to http://localhost:", "status 500"):
        assert f"cannot send to db: {words}" in agent.output()


def test_each_change_of_a_targets_answer_is_a_line(receiver, job, tmp_path):
    """A dozen in some seconds: more than the log's limit for repeated lines."""
    troubles = [401, 404, 403, 500, 407, 429]
    for code in troubles:
        receiver.faults.extend([status(code), None])
    agent = job.agent(settings(tmp_path, {"url": receiver.url, "name": "db"}), "--push-interval=0.2")
    job.worker().tell("busy my_app steps")
    wait_until(lambda: len(receiver.visits) > 2 * len(troubles) + 1 or None, "requests after those")
    assert [fault[0] for fault in receiver.met] == troubles
    changes = re.findall(r"cannot send to db: status (\d+)|db (accepts) samples again", agent.output())
    expected = [change for code in troubles for change in [(str(code), ""), ("", "accepts")]]
    assert changes == expected
    wait_until(lambda: all(sent(agent, "requests_total", target="db", status=str(code)) == 1 for code in troubles), "the count of each answer")
    wait_until(lambda: sent(agent, "request_duration_seconds_count", target="db") >= 2 * len(troubles), "the time of each")
    end(agent)
    assert "were left out" not in agent.output()


# Labels that do not compress: two requests, and the first is as large as they get, 4 MiB before compression.
SERIES = 10_000
WIDE = f"""
import base64
import random
import sys
from persia_metrics import Gauge
wide = Gauge("wide", "rows", "Wide ones.", ["key"])
source = random.Random({seed()})
for i in range({SERIES}):
    wide.labels(base64.b64encode(source.randbytes(360)).decode()).set(i)
print("ready", flush=True)
sys.stdin.readline()
"""
LEAST = 3_000_000  # bytes, of the first request's body


@pytest.fixture
def wide(receivers, job, tmp_path):
    """Starts an agent with such requests to a receiver with small buffers; returns agent, receiver, and one with times and counts."""
    well, receiver = receivers().start(), receivers(small_buffers=True).start()

    def start(*faults, timeout):
        receiver.faults.extend(faults)
        state = tmp_path / "state"
        state.mkdir()
        few = [{"source_labels": ["__name__"], "regex": "persia_agent_(series|remote_write_.*)", "action": "keep"}]
        targets = [
            {"url": well.url, "name": "well", "write_relabel_configs": few},
            {"url": receiver.url, "name": "db", "remote_timeout": f"{timeout}s", "queue_config": {"max_samples_per_send": 100_000}},
        ]
        worker = job.python(WIDE, PERSIA_METRICS_SEGMENT_BYTES=str(1 << 26))
        worker.wait_for("ready")
        flags = ["--gateway=off", "--push-interval=4", "--history=0", f"--state-dir={state}"]
        return job.agent(settings(tmp_path, *targets), *flags), receiver, well

    return start


def counted(well, family):
    """The agent's count for the slow target at the last collection, of all series; 0 before the first."""
    wanted = {("__name__", "persia_agent_remote_write_" + family), ("target", "db")}
    return sum(samples[-1][1] or 0 for labels, samples in well.all().items() if wanted <= labels)


def check_nothing_is_lost(agent, receiver, well):
    """Every collection has arrived, with all its series."""
    end(agent, well, receiver)
    times = [at for at, _ in well.series("persia_agent_series")]
    rows = [samples for labels, samples in receiver.all().items() if ("__name__", "wide_rows") in labels]
    assert len(rows) == SERIES
    assert {value for samples in rows for _, value in samples} == set(range(SERIES))
    assert all([at for at, _ in samples] == times for samples in rows)
    assert counted(well, "samples_failed_total") == 0
    assert receiver.errors == []


def test_a_body_that_is_read_too_slowly_is_sent_again(wide):
    timeout = 4
    agent, receiver, well = wide(SlowRead(3 * timeout), timeout=timeout)
    wait_until(lambda: counted(well, "samples_total") > SERIES, "samples after that", 120)
    slow, second = receiver.visits[:2]
    assert slow.size > LEAST
    wait_until(lambda: slow.whole is not None, "the end of what came of the body")
    assert not slow.whole, "the agent was to give up in the middle of the body, and not while it waits for the answer"
    assert second.fault is None
    assert counted(well, "retries_total") >= 1
    check_nothing_is_lost(agent, receiver, well)


def test_a_body_that_is_read_slowly_but_in_time_is_sent_once(wide):
    seconds = 3
    agent, receiver, well = wide(SlowRead(seconds), timeout=60)
    wait_until(lambda: counted(well, "samples_total") > SERIES, "samples after that", 120)
    slow = receiver.visits[0]
    assert slow.whole and slow.size > LEAST
    assert slow.answering - slow.arrived >= seconds
    check_nothing_is_lost(agent, receiver, well)
    assert counted(well, "retries_total") == 0
    assert receiver.replays == 0
