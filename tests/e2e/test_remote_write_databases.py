"""Remote write to a real Prometheus and a real VictoriaMetrics, compared with the strict receiver's samples."""

import contextlib
import itertools
import math
import os

import pytest
from conftest import EMBEDDING_JOB
from remote_write_databases import AnswerThief, PrometheusReceiver, VictoriaMetrics, check_samples, now_ms
from servers import wait_until
from test_remote_write import end, sent, settings, timestamps

import catalog

# The number of collections for which the databases are down, before and after the agent is killed; each takes 0.4 seconds.
AWAY = int(os.environ.get("PERSIA_TEST_COLLECTIONS_AWAY", "8"))
OF_THE_JOB = '{job="job_under_test"}'


def both(tmp_path, started):
    return [PrometheusReceiver(tmp_path, started), VictoriaMetrics(tmp_path, started)]


def targets(*databases, **urls):
    named = {**{db.name: db.url + "/api/v1/write" for db in databases}, **urls}
    return [{"url": url, "name": name} for name, url in named.items()]


def wait_for_samples(db, expected, times=None):
    wait_until(lambda: check_samples(db, OF_THE_JOB, expected, times), f"the samples in {db.name}", 30, 0.2)


def test_real_databases_show_what_metrics_shows(job, tmp_path, started):
    databases = both(tmp_path, started)
    agent = job.agent(settings(tmp_path, *targets(*databases)), "--gauge-ttl=0.5", "--push-interval=0.5")
    worker, staying = job.worker(replica=0), job.worker(replica=1)
    for told in ("count my_app batches 12345678901", "set my_app loss 0.1", "observe my_app latency 0.3", "count_feat my_app misses a 2"):
        worker.tell(told)
        staying.tell(told)

    def both_are_collected():
        collected = agent.metrics()
        return collected if len([1 for name, _ in collected if name == "my_app_misses"]) == 2 else None

    metrics = wait_until(both_are_collected, "a collection of both")
    for name in ("my_app_batches", "my_app_loss", "my_app_misses", "my_app_latency_bucket", "my_app_latency_sum", "persia_process_up"):
        expected = {labels: value for (have, labels), value in metrics.items() if have == name}
        assert expected
        for db in databases:
            wait_until(lambda db=db, name=name, expected=expected: db.query(name) == expected or None, f"{name} in {db.name}")
    # Times are those of the collections, not of the arrival.
    for db in databases:
        ages = db.query("time() - timestamp(my_app_loss)")
        assert len(ages) == 2 and all(-1 < age < 60 for age in ages.values())
    assert worker.leave() == 0
    for db in databases:
        wait_until(lambda db=db: [dict(labels)["instance"] for labels in db.query("my_app_loss")] == ["rep_1"], f"the end in {db.name}")
    for db in databases:
        assert sent(agent, "samples_failed_total", target=db.name) == 0
        assert sent(agent, "retries_total", target=db.name) == 0


@pytest.mark.timeout(300 + 2 * AWAY)
def test_an_outage_of_databases_and_kills_of_all_lose_nothing(receiver, job, tmp_path, started):
    """Kills the databases, kills the agent while they are down, and restarts them on the same port and storage."""
    databases = both(tmp_path, started)
    state = tmp_path / "state"
    state.mkdir()
    flags = [settings(tmp_path, *targets(*databases, strict=receiver.url)), f"--state-dir={state}", "--push-interval=0.4"]

    def wait_for_collections(since):
        """An earlier collection may arrive later."""
        wait_until(lambda: len([at for at in timestamps(receiver) if at > since]) >= AWAY, f"{AWAY} collections", 30 + AWAY)

    worker = job.worker()
    worker.tell("busy my_app steps")
    agent = job.agent(*flags)
    for db in databases:
        wait_until(lambda db=db: db.query("my_app_steps"), f"a first sample in {db.name}")
    for db in databases:
        db.kill()
    away = now_ms()
    wait_for_collections(away)
    agent.kill()
    killed = now_ms()
    agent = job.agent(*flags)
    wait_for_collections(killed)
    worker.tell("count my_app rounds 1")
    back = now_ms()
    for db in databases:
        db.start()
    for db in databases:
        reached = "highest_sent_timestamp_seconds"
        wait_until(lambda db=db: sent(agent, reached, target=db.name) > back / 1000, f"{db.name} to have it all", 60 + AWAY)
        assert sent(agent, "samples_failed_total", target=db.name) == 0
    assert not [value for (name, _), value in agent.metrics().items() if name.endswith("samples_dropped_total") and value != 0]
    end(agent)
    truth = receiver.all()
    assert receiver.errors == []
    assert receiver.replays <= len(truth), "one request may be taken, and not noted yet, when the kill comes"
    times = set(timestamps(receiver))
    assert len([at for at in times if away < at < back]) >= 2 * AWAY
    for db in databases:
        # VictoriaMetrics acknowledges samples that it has only in memory for some seconds; its own kill loses them.
        since = {"prometheus": 0, "victoria": away}[db.name]
        wanted = {at for at in times if at >= since}

        def shared(db=db, since=since, wanted=wanted):
            """The times that it has too. The agent's kill may come when one target has the newest collection and another not yet."""
            have = {at for samples in db.samples("persia_agent_series" + OF_THE_JOB).values() for at, _ in samples if at >= since}
            apart = wanted ^ have
            if len(apart) > 3 or not all(killed - 10_000 < at <= killed for at in apart):
                raise ValueError(f"{sorted(apart)}, kill at {killed}")
            return wanted & have

        wait_for_samples(db, truth, wait_until(shared, f"the same times in {db.name}", 30, 0.2))


def test_real_databases_keep_a_replay_once(receiver, job, tmp_path, started):
    """Answers are dropped, so that the agent sends samples again that the database already has."""
    prometheus, victoria = both(tmp_path, started)
    # Without the flag it keeps each replay, which proves that there were some.
    control = VictoriaMetrics(tmp_path, started, "control", flags=[])
    ports = {"strict": receiver.port, **{db.name: db.port for db in (prometheus, victoria, control)}}
    stolen = {0, 1, 4, 7, 8, 12}
    with contextlib.ExitStack() as stack:
        thieves = {name: stack.enter_context(AnswerThief(port, stolen)) for name, port in ports.items()}
        config = settings(tmp_path, *targets(**{name: thief.url for name, thief in thieves.items()}))
        agent = job.agent(config, "--push-interval=0.2")
        job.worker().tell("busy my_app steps")
        wait_until(lambda: all(thief.stolen == len(stolen) for thief in thieves.values()), "the answers to be stolen", 60)
        for name in thieves:
            wait_until(lambda name=name: sent(agent, "retries_total", target=name) > 0, f"the retries to {name}")
        end(agent)
    assert receiver.errors == []
    assert receiver.replays >= len(stolen)
    truth = receiver.all()
    for db in (prometheus, victoria):
        wait_for_samples(db, truth)

    def kept_twice():
        def times_in(family):
            return [at for found in control.samples(family + OF_THE_JOB).values() for at, _ in found]

        times = times_in("persia_agent_series")
        # A request that was sent again has one of each collection, or the zero where the count began.
        zeros = [at for at in times_in("my_app_steps") if at not in times]
        replays = len(times) - len(set(times)) + len(zeros) - len(set(zeros))
        return replays >= len(stolen) and set(times) == set(timestamps(receiver))

    wait_until(kept_twice, "the replays in the database that keeps them")


def test_the_demo_job_arrives_and_ends(receiver, job, tmp_path, started):
    databases = both(tmp_path, started)
    config = settings(tmp_path, *targets(*databases, strict=receiver.url))
    flags = [config, "--gateway=off", "--push-interval=0.5", "--on-job-end=delete"]
    agent = job.exec(
        EMBEDDING_JOB, "--duration=5", "--corpus=/usr/share/common-licenses", "--server-capacity=2000", "--inject-nan=0.01", flags=flags
    )
    assert agent.wait(120) == 0, agent.output()[-4000:]
    truth = receiver.all()
    assert receiver.errors == []
    names = {dict(labels)["__name__"] for labels in truth}
    for entry in catalog.entries():
        assert (entry.name + "_count" if entry.type == "time_cost" else entry.name) in names
    assert all(samples[-1][1] is None for samples in truth.values()), "a series without an end"
    for db in databases:
        wait_for_samples(db, truth)
        # Prometheus looks back for five minutes, except at stale markers.
        wait_until(lambda db=db: db.query(OF_THE_JOB) == {} or None, f"the end of all series in {db.name}")


JOBS = 3


def test_the_increase_over_jobs_shorter_than_a_tick_is_what_they_counted(receiver, job, tmp_path, started):
    """Each has the same labels, and ends with the same counts: without samples of 0, nothing would seem to be counted."""
    databases = both(tmp_path, started)
    config = settings(tmp_path, *targets(*databases, strict=receiver.url))
    for _ in range(JOBS):
        agent = job.exec_worker(config, "--gateway=off", "--push-interval=60")
        for told in ("count my_app batches 7", "count my_app fractions 0.5", "observe my_app latency 0.3", "count_feat my_app misses a 2"):
            agent.tell(told)
        assert agent.leave() == 0
    assert receiver.errors == []
    expected = {"my_app_batches": 7, "my_app_fractions": 0.5, "my_app_misses": 2, "my_app_latency_count": 1, "my_app_latency_sum": 0.3}
    expected |= {'my_app_latency_bucket{le="+Inf"}': 1, 'my_app_latency_bucket{le="0.1"}': 0}
    for selector, count in expected.items():
        at = max(at for samples in databases[0].samples(selector).values() for at, _ in samples)
        for db in databases:

            def increase(db=db, selector=selector, at=at):
                (value,) = db.query(f"increase({selector}[5m] @ {at / 1000})").values()
                return math.isclose(value, JOBS * count) or None

            wait_until(increase, f"the increase of {selector} in {db.name}", 30, 0.2)
    values = [value for _, value in receiver.series("my_app_batches")]
    assert [value for value, _ in itertools.groupby(values)] == [0, 7] * JOBS
    assert values.count(0) == JOBS


MANY = """
import time
from persia_metrics import Gauge
norm = Gauge("many", "norm", "Of a row.", ["row"])
rows = [norm.labels(i) for i in range(20_000)]
number = 0
while True:
    number += 1
    for row in rows:
        row.set(number + 0.1)
    if number == 1:
        print("ready", flush=True)
    time.sleep(1)
"""
SERIES = 20_000


def test_many_series_each_second_leave_nothing_waiting(job, tmp_path, started):
    victoria = VictoriaMetrics(tmp_path, started)
    state = tmp_path / "state"
    state.mkdir()
    worker = job.python(MANY, PERSIA_METRICS_SEGMENT_BYTES=str(1 << 26))
    worker.wait_for("ready")
    flags = ["--gateway=off", "--push-interval=1", f"--state-dir={state}"]
    agent = job.agent(settings(tmp_path, *targets(victoria)), *flags)

    def by_time(family):
        found = victoria.samples(f'{family}{{job="{job.name}"}}')
        assert len(found) <= 1 or "dropped" in family
        return {at: value for samples in found.values() for at, value in samples}

    def ticks_without_a_wait():
        """This many consecutive ticks, a second apart; before each of them all samples were sent."""
        pending, skipped = by_time("persia_agent_remote_write_pending_samples"), by_time("persia_agent_ticks_skipped_total")
        row = []
        for at in sorted(pending.keys() & skipped.keys()):
            if pending[at] > 0 or (row and skipped[at] != skipped[row[-1]]):
                row = []
            if pending[at] == 0:
                row.append(at)
            if len(row) == 10:
                return row
        raise ValueError(f"pending {pending}, skipped {skipped}")

    row = wait_until(ticks_without_a_wait, "ticks that leave nothing waiting", 300, 0.5)
    assert 8_000 < row[-1] - row[0] < 10_500, row
    end(agent)
    assert set(by_time("persia_agent_remote_write_samples_dropped_total").values()) == {0}

    def each_tick_has_all():
        ticks = by_time("persia_agent_series")
        found = victoria.query('count_values("samples", count_over_time(many_norm[10m]))')
        if set(row) - set(ticks) or found != {frozenset({("samples", str(len(ticks)))}): SERIES}:
            raise ValueError(f"{len(ticks)} ticks, series by samples: {found}")
        return True

    wait_until(each_tick_has_all, "each series once for each tick")
