"""Several `exec` of one job on one host, as srun starts them: one agent collects, the others wait for their turn, and no count is lost or counts twice."""

import contextlib
import os
import re
import signal
from pathlib import Path

import pytest
from servers import wait_until
from supervised import agent_of, wait_for_agent


def ranks(job, number, *flags):
    """Workers under agents, each of which has counted 1; the first agent collects."""
    workers = []
    for rank in range(number):
        worker = job.exec_worker("--push-timeout=1", *flags, env={"REPLICA_INDEX": str(rank)})
        worker.tell("count my_app batches 1")
        if rank == 0:
            wait_until(worker.metrics, "the agent's pages")
        else:
            wait_until(lambda: "goes on when that one ends" in worker.output(), "the agent to wait")
        workers.append(worker)
    return workers


def wait_for_all(gateway, counts):
    for rank, count in counts.items():
        gateway.wait_for("my_app_batches", count, instance=f"rep_{rank}")


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0), (0, 2, 1)], ids=str)
def test_whoever_waits_goes_on_where_another_ended(job, gateway, order):
    workers = ranks(job, 3)
    counts = dict.fromkeys(range(3), 1)
    wait_for_all(gateway, counts)
    left = list(order)
    while left:
        for rank in left:
            workers[rank].tell("count my_app batches 10")
            counts[rank] += 10
        assert workers[left.pop(0)].leave() == 0
        wait_for_all(gateway, counts)
    assert "no count" not in "".join(worker.output() for worker in workers)


def test_the_last_one_ends_the_run(job, gateway):
    first, second = ranks(job, 2)
    assert f"the command runs, and the agent with pid {agent_of(first)} collects its values, with its page on {first.url}/; this" in second.output()
    assert first.leave() == 0
    second.tell("count my_app batches 1")
    assert second.leave() == 0
    ended = re.compile("run [0-9a-f]{16} has ended")
    assert not ended.search(first.output()) and ended.search(second.output())
    again = job.exec_worker()
    run = re.compile("run ([0-9a-f]{16})")
    wait_until(lambda: run.search(again.output()), "its run")
    assert run.search(first.output())[1] == run.search(second.output())[1] != run.search(again.output())[1]


def test_those_that_start_and_end_at_once_are_of_one_run(job, gateway):
    workers = [job.exec_worker("--push-timeout=2", env={"REPLICA_INDEX": str(rank)}) for rank in range(6)]
    for worker in workers:
        worker.tell("count my_app batches 3")
    for worker in workers:
        worker.popen.stdin.close()
    assert [worker.wait() for worker in workers] == [0] * 6
    wait_for_all(gateway, dict.fromkeys(range(6), 3))
    log = "".join(worker.output() for worker in workers)
    assert len(set(re.findall("run ([0-9a-f]{16})", log))) == 1, log
    assert len(re.findall("run [0-9a-f]{16} has ended", log)) == 1, log


@pytest.mark.parametrize("killed", [0, 1, 2])
def test_a_killed_agent_is_replaced_by_one_that_waits(job, gateway, killed):
    workers = ranks(job, 3)
    counts = dict.fromkeys(range(3), 1)
    for _ in range(3):
        before = agent_of(workers[killed])
        os.kill(before, signal.SIGKILL)
        wait_for_agent(workers[killed], before)
        for rank, worker in enumerate(workers):
            worker.tell("count my_app batches 1")
            counts[rank] += 1
        wait_for_all(gateway, counts)
    for worker in workers:
        assert worker.leave() == 0
    wait_for_all(gateway, counts)


def test_what_is_counted_while_the_other_ends_arrives(job, gateway):
    """The first agent is stopped in its last push, so that its last collection misses what comes then."""
    first, second = ranks(job, 2)
    agent = wait_for_agent(first)
    gateway.server.signal(signal.SIGSTOP)
    first.popen.stdin.close()
    # While an agent collects, it has a read lock on the first byte.
    collects = re.compile(rf"READ +\S+ \S+:{(job.segments / 'agent.lock').stat().st_ino} 0 0$", re.MULTILINE)
    wait_until(lambda: not collects.search(Path("/proc/locks").read_text()), "the end of the first agent")
    os.kill(agent, signal.SIGSTOP)
    second.tell("count my_app batches 5")
    second.popen.stdin.close()
    gateway.server.signal(signal.SIGCONT)
    with contextlib.suppress(ProcessLookupError):
        os.kill(agent, signal.SIGCONT)
    assert (first.wait(), second.wait()) == (0, 0)
    wait_for_all(gateway, {0: 1, 1: 6})


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL], ids=["ends", "is killed"])
def test_an_exec_goes_on_where_a_run_ended(job, gateway, end):
    agent = job.agent()
    wait_until(agent.metrics, "the agent's pages")
    first = job.worker()
    second = job.exec_worker("--push-timeout=1", env={"REPLICA_INDEX": "1"})
    wait_until(lambda: "goes on when that one ends" in second.output(), "the agent to wait")
    first.tell("count my_app batches 2")
    second.tell("count my_app batches 3")
    wait_for_all(gateway, {0: 2, 1: 3})
    agent.signal(end)
    agent.wait()
    first.tell("count my_app batches 20")
    second.tell("count my_app batches 30")
    wait_for_all(gateway, {0: 22, 1: 33})
    assert second.leave() == 0


def left_in(state):
    return [path.name for path in state.iterdir() if path.suffix in (".state", ".host")]


@pytest.mark.parametrize("end", ["ends", "is killed"])
def test_the_next_agent_has_the_counts_that_are_in_the_state_directory_alone(job, gateway, tmp_path, end):
    workers = ranks(job, 2, f"--state-dir={tmp_path / 'state'}")
    former = job.worker(replica=2)
    former.tell("count my_app batches 5")
    gateway.wait_for("my_app_batches", 5, instance="rep_2")
    former.leave()
    wait_until(lambda: len(list(job.segments.glob("*.seg"))) == 2, "its counts to be in the state")
    if end == "ends":
        assert workers[0].leave() == 0
    else:
        workers[0].kill()  # the supervisor, and its agent with it
    wait_until(lambda: workers[1].metrics().one("my_app_batches", instance="rep_2") == 5, "the next agent's view")
    again = job.worker(replica=2)
    again.tell("count my_app batches 3")
    gateway.wait_for("my_app_batches", 8, instance="rep_2")
    again.leave()
    assert [path.name for path in (tmp_path / "state").glob("*.state")] == ["job_under_test.rep_0.state"]
    workers[0].popen.stdin.close()
    assert workers[1].leave() == 0
    gateway.wait_for("my_app_batches", 8, instance="rep_2")
    assert left_in(tmp_path / "state") == []


def test_whoever_comes_first_after_a_container_has_restarted_goes_on(job, gateway, tmp_path):
    state = f"--state-dir={tmp_path / 'state'}"
    former = ranks(job, 2, state)
    wait_for_all(gateway, {0: 1, 1: 1})
    for worker in former:
        worker.kill()
        worker.popen.stdin.close()
    for path in job.segments.iterdir():
        path.unlink()
    workers = []
    for rank in (1, 0):
        workers.append(job.exec_worker(state, env={"REPLICA_INDEX": str(rank)}))
        workers[-1].tell("count my_app batches 10")
        gateway.wait_for("my_app_batches", 11, instance=f"rep_{rank}")
        assert workers[0].metrics().one("my_app_batches", instance="rep_0") == (11 if rank == 0 else 1)
    assert [worker.leave() for worker in workers] == [0, 0]
    assert left_in(tmp_path / "state") == []
