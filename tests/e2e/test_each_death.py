"""Each death is told once, whatever the agent does meanwhile: it starts later, it is killed, or it sees two at once."""

import json
import os
import signal
import subprocess

from conftest import AGENT, BUILD, WORKER, environment
from servers import fetch, wait_until
from supervised import agent_of, wait_for_agent

WALL_CLOCK = BUILD / "tests/e2e/worker/libwall_clock.so"


def deaths_of(agent):
    """Instance and cause of each death in the agent's API."""
    return [(death["instance"], death["exit"], death["cause"]) for death in json.loads(fetch(agent.url + "/api/v1/status")[1])["deaths"]]


def told(agent):
    """How often the log of the agent says that a process died."""
    return agent.output().count(" died: ")


def total(shown):
    return sum(value for (name, _), value in shown.items() if name == "persia_worker_deaths_total")


def dead_worker(job, replica=0):
    """A worker that counted and was killed."""
    worker = job.worker(replica=replica)
    worker.tell("count my_app batches 1")
    worker.kill()


def test_a_death_before_the_first_collection_is_told(job, gateway):
    dead_worker(job)
    agent = job.agent()
    wait_until(lambda: len(deaths_of(agent)) == 1, "the death")
    (death,) = json.loads(fetch(agent.url + "/api/v1/status")[1])["deaths"]
    assert death["role"] == "trainer" and death["instance"] == "rep_0" and death["look_at"]
    wait_until(lambda: total(gateway.metrics()) == 1, "its count on the gateway")
    assert told(agent) == 1


def test_two_deaths_of_a_rank_between_two_collections_are_told(job):
    agent = job.agent("--push-interval=1")
    wait_until(lambda: agent.metrics().one("persia_agent_segments", state="live") == 0, "the first collection")
    for _ in range(2):
        worker = job.worker()
        worker.tell("count my_app batches 1")
        worker.popen.stdin.write("exit 3\n")
        worker.popen.stdin.flush()
        assert worker.wait() == 3
    wait_until(lambda: total(agent.metrics()) == 2, "both")
    assert told(agent) == 2
    assert [instance for instance, _, _ in deaths_of(agent)] == ["rep_0", "rep_0"]


def test_the_next_agent_knows_the_deaths_and_tells_none_again(job, gateway):
    first = job.agent()
    dead_worker(job)
    wait_until(lambda: total(gateway.metrics()) == 1, "the death")
    before = deaths_of(first)
    first.kill()
    dead_worker(job, replica=1)  # while no agent runs
    second = job.agent()
    wait_until(lambda: total(second.metrics()) == 2, "the other death")
    assert deaths_of(second)[:1] == before
    assert told(second) == 1 and "rep_1 died: " in second.output()


def test_an_agent_that_is_killed_at_any_time_loses_no_death_and_counts_none_twice(job):
    """Ranks die while the supervisor's agent is killed again and again."""
    ranks = 6
    script = f"for rank in {' '.join(map(str, range(ranks)))}; do (echo 'count my_app batches 1'; sleep 0.15; echo 'exit 3') | REPLICA_INDEX=$rank {WORKER}; done"
    agent = job.exec("sh", "-c", script + "; sleep 60", env={"PERSIA_ROLE": "trainer"}, flags=["--push-interval=0.1"])
    killed = None
    for _ in range(4):
        pid = wait_for_agent(agent, other_than=killed)
        wait_until(lambda: total_or_none(agent) is not None, "pages")
        os.kill(pid, signal.SIGKILL)
        killed = pid
        wait_until(lambda: agent_of(agent) != killed, "its end")
    wait_until(lambda: total_or_none(agent) == ranks, "all deaths")
    assert sorted(deaths_of(agent)) == [(f"rep_{rank}", "exit_3", "exit_code") for rank in range(ranks)]
    agent.popen.send_signal(signal.SIGTERM)
    agent.wait()


def total_or_none(agent):
    """None while no agent serves pages."""
    try:
        return total(agent.metrics())
    except OSError:
        return None


def test_the_deaths_of_a_former_command_stay_and_are_not_told_again(job, gateway):
    command = ("sh", "-c", f"(echo 'count my_app batches 1'; echo 'exit 3') | {WORKER}; exit 1")
    first = job.exec(*command, env={"PERSIA_ROLE": "trainer"})
    assert first.wait() == 1
    assert total(gateway.metrics()) == 1
    second = job.exec("sh", "-c", "sleep 60", env={"PERSIA_ROLE": "trainer"})
    wait_until(lambda: total(second.metrics()) == 1, "the count of the run")
    assert deaths_of(second) == [("rep_0", "exit_3", "exit_code")]
    assert told(second) == 0
    second.popen.send_signal(signal.SIGTERM)
    second.wait()


def test_a_clock_that_is_set_back_hides_no_death(job, tmp_path):
    shift, go = tmp_path / "shift", tmp_path / "go"
    shift.write_text("0")
    command = f"until [ -e {go} ]; do sleep 0.05; done; (echo 'count my_app batches 1'; echo 'exit 3') | {WORKER}; sleep 60"
    env = {"PERSIA_ROLE": "trainer", "LD_PRELOAD": str(WALL_CLOCK), "WALL_CLOCK_SHIFT": str(shift)}
    agent = job.exec("sh", "-c", command, env=env)
    wait_until(lambda: agent.metrics().one("persia_agent_segments", state="live") == 0, "the first collection")
    shift.write_text("-60")
    go.touch()
    wait_until(lambda: deaths_of(agent) == [("rep_0", "exit_3", "exit_code")], "the death")
    wait_until(lambda: json.loads(fetch(agent.url + "/api/v1/status")[1])["health"]["state"] == "degraded", "the job's state")
    agent.popen.send_signal(signal.SIGTERM)
    agent.wait()


def test_once_tells_nothing(job):
    agent = job.agent()
    dead_worker(job)
    wait_until(lambda: total(agent.metrics()) == 1, "the death")
    done = subprocess.run(
        [AGENT, "once", f"--job={job.name}", f"--metrics-dir={job.segments}"], env=environment(), capture_output=True, text=True, timeout=60, check=True
    )
    assert " died: " not in done.stderr
