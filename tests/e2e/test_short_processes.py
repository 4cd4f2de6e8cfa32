"""A job may start thousands of short processes: their counts stay, and ended ones take no time or space."""

import os
import signal
from fractions import Fraction

from conftest import BUILD, environment
from servers import wait_until

SHORT_WORKER = BUILD / "tests/chaos/worker/chaos_worker"
COUNT = 2000


def test_two_thousand_short_processes_leave_their_counts_and_nothing_else(job, gateway):
    agent = job.agent("--push-interval=0.1")
    wait_until(agent.metrics, "the agent, before hundreds of them wait for it")
    env = environment(PERSIA_METRICS_DIR=str(job.segments), PERSIA_JOB_NAME=job.name, PERSIA_ROLE="short", REPLICA_INDEX="0")

    def run_one():
        pid = os.posix_spawn(SHORT_WORKER, [SHORT_WORKER, "--short"], env, setsigdef=[signal.SIGPIPE])
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

    for _ in range(COUNT):
        run_one()
    gateway.wait_for("persia_events_total", COUNT, event="short")  # which each does last
    wait_until(lambda: not list(job.segments.glob("*.seg")), "the files of dead processes to go")

    seen = gateway.metrics()
    assert seen.one("chaos_short_processes_total") == COUNT
    assert seen.one("chaos_short_tenths_total") == float(COUNT * Fraction(0.1))
    assert seen.one("chaos_short_step_time_cost_sum") == COUNT * 0.25
    assert seen.one("chaos_short_step_time_cost_count") == COUNT
    assert seen.one("chaos_short_step_time_cost_bucket", le="0.25") == COUNT
    assert seen.one("chaos_short_step_time_cost_bucket", le="0.1") == 0
    assert [seen.one("chaos_short_parts_total", part=part) for part in "abc"] == [2 * COUNT] * 3
    # Every process appended some 500 bytes. The first one after 64 KiB of them begins the file anew, however many the
    # collection before it appended at once: then there are a small checkpoint and at most 64 KiB more.
    run_one()
    wait_until(lambda: (job.segments / "agent.state").stat().st_size < 128 << 10, "the state file to be begun anew")
