"""A job may start thousands of short processes: what they counted stays, and they cost nothing once they are gone."""

import os
import re
import shutil
import signal
import statistics
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import pytest
from conftest import BUILD, Job, environment
from servers import fetch, wait_until

SHORT_WORKER = BUILD / "tests/chaos/worker/chaos_worker"
MANY, FEW = 2000, 20
SAMPLES = 50


@pytest.fixture
def jobs(tmp_path, segments, gateway, started):
    """Two jobs on one gateway: one for many processes, and one for few, to compare with."""
    other = Path(tempfile.mkdtemp(prefix="persia-e2e-", dir="/dev/shm"))
    many, few = Job(tmp_path, segments, gateway, started), Job(tmp_path, other, gateway, started)
    many.name, few.name = "many_processes", "few_processes"
    yield many, few
    shutil.rmtree(other, ignore_errors=True)


def run_one_after_another(job, count):
    env = environment(PERSIA_METRICS_DIR=str(job.segments), PERSIA_JOB_NAME=job.name, PERSIA_ROLE="short", REPLICA_INDEX="0")
    for _ in range(count):
        pid = os.posix_spawn(SHORT_WORKER, [SHORT_WORKER, "--short"], env, setsigdef=[signal.SIGPIPE])
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


class CollectTimes:
    """How long an agent's collections take, each by itself."""

    def __init__(self, agent):
        self._url = agent.url + "/metrics"
        self._before = None
        self.seconds = []

    def look(self):
        body = fetch(self._url)[1]
        now = tuple(float(re.search(rf"^persia_agent_collect_duration_seconds_{part}{{.*}} (\S+)$", body, re.M)[1]) for part in ("count", "sum"))
        if self._before is not None and now[0] > self._before[0]:
            self.seconds.append((now[1] - self._before[1]) / (now[0] - self._before[0]))
        self._before = now


def ratio_of_collect_times(agent, other):
    """The median of one by that of the other, measured at the same time, so that the machine's own moods are in both."""
    one, two = CollectTimes(agent), CollectTimes(other)
    while min(len(one.seconds), len(two.seconds)) < SAMPLES:
        one.look()
        two.look()
        time.sleep(0.05)
    return statistics.median(one.seconds) / statistics.median(two.seconds)


def segment_files(job):
    return sorted(path.name for path in job.segments.glob("*.seg"))


def test_two_thousand_short_processes_leave_their_counts_and_nothing_else(jobs, gateway):
    many, few = jobs
    agents = [job.agent("--push-interval=0.1") for job in jobs]
    for job, count in ((few, FEW), (many, MANY)):
        run_one_after_another(job, count)
        gateway.wait_for("chaos_short_processes_total", count, job=job.name)
        wait_until(lambda: not segment_files(job), "the files of dead processes to go")

    for job, count in ((few, FEW), (many, MANY)):
        seen = gateway.metrics()
        assert seen.one("chaos_short_tenths_total", job=job.name) == float(count * Fraction(0.1))
        assert seen.one("chaos_short_step_time_cost_sum", job=job.name) == count * 0.25
        assert seen.one("chaos_short_step_time_cost_count", job=job.name) == count
        assert seen.one("chaos_short_step_time_cost_bucket", job=job.name, le="0.25") == count
        assert seen.one("chaos_short_step_time_cost_bucket", job=job.name, le="0.1") == 0
        assert [seen.one("chaos_short_parts_total", job=job.name, part=part) for part in "abc"] == [2 * count] * 3
        assert seen.one("persia_events_total", job=job.name, event="short") == count

    # A round in which something else held one of them up is not theirs.
    ratios = []
    while len(ratios) < 10 and min(ratios, default=9) > 1.2:
        ratios.append(ratio_of_collect_times(*agents))
    print(f"collect time after {MANY} processes by that after {FEW}: {ratios}")
    assert min(ratios) <= 1.2
