"""Counts of ended processes over restarts of workers, agents and containers, and the limits of a run."""

import json
import os
import resource
import shutil
import signal
import stat
from pathlib import Path

from servers import fetch, wait_until
from supervised import agent_of, slow


def segment_files(segments):
    return sorted(path.name for path in segments.glob("*.seg"))


def wait_for_log(agent, text):
    wait_until(lambda: text in agent.output(), f"{text!r} in the agent's log")


def test_last_values_of_a_killed_worker_outlive_its_file_and_its_successor_adds_to_them(job, gateway, segments):
    agent = job.agent()
    worker = job.worker()
    worker.tell("count my_app batches 41")
    gateway.wait_for("my_app_batches", 41)
    worker.tell("count my_app batches 1.5")
    worker.tell("set my_app loss 0.25")
    worker.tell("observe persia lookup_rpc_time_cost 0.5")
    worker.kill()
    gateway.wait_for("my_app_batches", 42.5, role="trainer", instance="rep_0")
    gateway.wait_for("my_app_loss", 0.25)
    gateway.wait_for("lookup_rpc_time_cost_count", 1)
    gateway.wait_for("lookup_rpc_time_cost_sec", 0.5)
    wait_until(lambda: segment_files(segments) == [], "the file of the killed worker to go")
    gateway.wait_for("persia_agent_retired_processes_total", 1)
    assert agent.metrics().one("my_app_batches") == 42.5
    job.worker().tell("count my_app batches 5")
    gateway.wait_for("my_app_batches", 47.5)


def test_agent_that_is_killed_and_started_again_goes_on(job, gateway, segments):
    agent = job.agent()
    first, second = job.worker(), job.worker(replica=1)
    first.tell("count my_app batches 10")
    second.tell("count my_app batches 1")
    gateway.wait_for("my_app_batches", 10, instance="rep_0")
    first.kill()
    wait_until(lambda: len(segment_files(segments)) == 1, "the first worker's file to go")
    agent.kill()
    second.tell("count my_app batches 1")
    second.kill()
    again = job.agent()
    gateway.wait_for("my_app_batches", 2, instance="rep_1")
    gateway.wait_for("my_app_batches", 10, instance="rep_0")
    wait_until(lambda: segment_files(segments) == [], "the second worker's file to go")
    assert "continues run" in again.output()


def test_state_dir_outlives_the_segments(job, gateway, segments, tmp_path):
    state = f"--state-dir={tmp_path / 'volume' / 'state'}"
    agent = job.agent(state)
    worker = job.worker()
    worker.tell("count my_app batches 10")
    gateway.wait_for("my_app_batches", 10)
    worker.leave()
    wait_until(lambda: segment_files(segments) == [], "the worker's file to go")
    agent.kill()
    for path in segments.iterdir():  # a restarted container has an empty /dev/shm
        path.unlink()

    again = job.agent(state)
    worker = job.worker()
    worker.tell("count my_app batches 5")
    gateway.wait_for("my_app_batches", 15)
    assert "continues run" in again.output()
    assert [path.name for path in (tmp_path / "volume/state").glob("*.state")] == ["job_under_test.rep_0.state"]
    assert stat.S_IMODE((tmp_path / "volume/state").stat().st_mode) == 0o700


def test_state_dir_outlives_workers_that_are_lost_with_their_container(job, gateway, segments, tmp_path):
    state = f"--state-dir={tmp_path / 'state'}"
    agent = job.agent(state)
    worker = job.worker()
    worker.tell("count my_app batches 10.5")
    gateway.wait_for("my_app_batches", 10.5)
    agent.kill()
    worker.kill()
    for path in segments.iterdir():
        path.unlink()

    job.agent(state)
    worker = job.worker()
    worker.tell("count my_app batches 5")
    gateway.wait_for("my_app_batches", 15.5)


def test_a_state_dir_that_cannot_be_opened_costs_no_metrics(job, gateway, tmp_path):
    (tmp_path / "file").write_text("text")
    flag = f"--state-dir={tmp_path / 'file' / 'state'}"
    agent = job.exec_worker(flag)
    agent.tell("count my_app batches 3")
    gateway.wait_for("my_app_batches", 3)
    wait_until(lambda: agent.metrics().one("persia_agent_config_errors") == 1, "the error on /metrics")
    assert "the state is kept beside the segments" in agent.output()
    assert agent.leave() == 0
    assert job.agent(flag, "--strict").wait() == 1
    assert job.exec("true", flags=[flag, "--strict"]).wait() == 125


def test_state_that_another_agent_has_is_left_to_it(job, tmp_path):
    state = f"--state-dir={tmp_path / 'state'}"
    first = job.agent(state)
    wait_for_log(first, "starts run")
    second = job.agent(state, f"--metrics-dir={tmp_path / 'other'}")
    wait_for_log(second, "starts run")
    used = f"the agent with pid {first.popen.pid} uses {tmp_path / 'state'}/job_under_test.rep_0.state already"
    assert f"{used}; this one keeps its state beside the segments" in second.output()
    wait_until(lambda: (tmp_path / "other" / "agent.state").exists(), "its state")


def test_broken_state_is_set_aside_and_said(job, gateway, segments):
    agent = job.agent()
    worker = job.worker()
    worker.tell("count my_app batches 10")
    worker.leave()
    gateway.wait_for("my_app_batches", 10)
    wait_until(lambda: segment_files(segments) == [], "the worker's file to go")
    agent.kill()
    broken = bytearray((segments / "agent.state").read_bytes())
    broken[40] ^= 1  # in the checkpoint: a kill may cut appended records short
    (segments / "agent.state").write_bytes(broken)

    again = job.agent()
    worker = job.worker()
    worker.tell("count my_app batches 1")
    gateway.wait_for("my_app_batches", 1)
    assert f"it is kept as {segments}/agent.state.broken-1" in again.output()
    assert (segments / "agent.state.broken-1").read_bytes() == broken


def test_run_goes_on_after_a_failure_and_ends_with_success(job, gateway, segments):
    for total, code in (3, 1), (6, 0), (3, 0):
        agent = job.exec_worker()
        agent.tell("count my_app batches 3")
        gateway.wait_for("my_app_batches", total)
        agent.popen.stdin.write(f"exit {code}\n")
        agent.popen.stdin.flush()
        assert agent.wait() == code
        assert gateway.metrics().one("my_app_batches") == total
    assert segment_files(segments) == []
    assert not (segments / "agent.state").exists()


def test_gauges_of_the_dead_and_instances_that_left_end_everywhere(job, gateway):
    agent = job.agent("--gauge-ttl=2")
    leaving, staying = job.worker(), job.worker("server")
    leaving.tell("set my_app loss 0.5")
    leaving.tell("count my_app batches 3")
    staying.tell("set my_app loss 0.25")
    gateway.wait_for("my_app_loss", 0.5, role="trainer")
    assert leaving.leave() == 0
    gateway.wait_for("my_app_loss", None, role="trainer")
    gateway.wait_for("my_app_batches", None, role="trainer")
    seen = agent.metrics()
    assert seen.one("my_app_loss", role="trainer") is None
    assert seen.one("my_app_batches", role="trainer") is None
    assert seen.one("my_app_loss", role="server") == 0.25

    back = job.worker()
    back.tell("count my_app batches 1")
    gateway.wait_for("my_app_batches", 4, role="trainer")
    assert gateway.metrics().one("my_app_loss", role="trainer") is None


def test_a_dead_rank_stays_down_until_its_replacement_starts(job, gateway):
    agent = job.agent("--gauge-ttl=1")
    dying, staying = job.worker(), job.worker(replica=1)
    dying.tell("set my_app loss 0.5")
    dying.tell("count my_app batches 3")
    staying.tell("count my_app batches 1")
    gateway.wait_for("my_app_batches", 3, instance="rep_0")
    dying.signal(signal.SIGKILL)  # its parent has not reaped it yet, so the agent can read why it ended
    rank = {"role": "trainer", "instance": "rep_0", "process": "0"}
    gateway.wait_for("persia_process_died", 1, **rank)
    gateway.wait_for("my_app_loss", None)  # longer than --gauge-ttl
    reason = {**rank, "reason": "SIGKILL"}
    for shown in (agent.metrics(), gateway.metrics()):
        assert shown.one("persia_process_up", **rank) == 0
        assert shown.one("persia_process_died", **rank) == 1
        assert shown.one("persia_process_last_exit_info", **reason) == 1
        assert shown.one("persia_process_exits_total", role="trainer", instance="rep_0", reason="SIGKILL") == 1
        assert shown.one("my_app_batches", role="trainer", instance="rep_0") == 3
    agent.kill()
    agent = job.agent("--gauge-ttl=1")
    wait_until(lambda: agent.metrics().one("persia_process_died", **rank) == 1, "the next agent's view")

    back = job.worker()
    back.tell("count my_app batches 1")
    gateway.wait_for("my_app_batches", 4, instance="rep_0")
    gateway.wait_for("persia_process_died", None, **rank)
    assert gateway.metrics().one("persia_process_up", **rank) == 1
    back.signal(signal.SIGKILL)
    gateway.wait_for("persia_process_died", 1, **rank)
    assert staying.leave() == 0
    gateway.wait_for("persia_process_up", None, instance="rep_1")  # longer than --gauge-ttl
    shown = gateway.metrics()
    assert (shown.one("persia_process_up", **rank), shown.one("persia_process_died", **rank)) == (0, 1), "other agents may go on"
    assert json.loads(fetch(f"{agent.url}/api/v1/status")[1])["health"]["state"] == "failed"
    log = agent.output()
    assert "warning: trainer rep_0 died: SIGKILL" in log
    assert "info: trainer rep_0 started again, pid" in log and "info: trainer rep_1 has ended: exit code 0" in log


def test_instance_that_left_keeps_its_counts_if_asked_to(job, gateway):
    agent = job.agent("--gauge-ttl=0.5", "--on-instance-end=keep")
    worker = job.worker()
    worker.tell("set my_app loss 0.5")
    worker.tell("count my_app batches 3")
    gateway.wait_for("my_app_loss", 0.5)
    worker.kill()
    gateway.wait_for("my_app_loss", None)
    gateway.wait_for("my_app_batches", 3)
    assert agent.metrics().one("my_app_batches") == 3


def test_worker_that_makes_series_without_end_is_held_to_the_limit(job, gateway):
    agent = job.agent("--max-series-per-instance=30")
    runaway, good = job.worker(), job.worker("server")
    good.tell("count my_app batches 7")
    for step in range(100):
        runaway.tell(f"count_feat my_app steps step_{step} 1")
    gateway.wait_for("persia_agent_dropped_series", 70, reason="max_series_per_instance")
    gateway.wait_for("my_app_batches", 7)
    shown = [key for key in gateway.metrics() if key[0] == "my_app_steps"]
    assert len(shown) == 30
    lines = [line for line in agent.output().splitlines() if "max_series_per_instance" in line]
    assert len(lines) == 1 and "my_app_steps" in lines[0], agent.output()


def test_directory_that_is_removed_under_way_is_made_again(job, gateway, segments):
    agent = job.agent()
    old = job.worker()
    old.tell("count my_app batches 10")
    gateway.wait_for("my_app_batches", 10)
    shutil.rmtree(segments)
    wait_for_log(agent, "are created again")
    assert stat.S_IMODE(segments.stat().st_mode) == 0o700

    old.tell("count my_app batches 1")
    new = job.worker()
    new.tell("count my_app batches 100")
    gateway.wait_for("my_app_batches", 111)
    old.kill()
    new.kill()
    wait_until(lambda: segment_files(segments) == [] and (segments / "agent.state").exists(), "the state in the new directory")
    agent.kill()
    job.agent()
    worker = job.worker()
    worker.tell("count my_app batches 1000")
    gateway.wait_for("my_app_batches", 1111)


def test_files_that_are_removed_under_way_are_made_again(job, gateway, segments):
    """All, as logind does when its user logs out. A second agent still finds that the first one collects."""
    agent = job.agent()
    old = job.worker()
    old.tell("count my_app batches 10")
    gateway.wait_for("my_app_batches", 10)
    for file in segments.iterdir():
        file.unlink()
    wait_for_log(agent, "are created again")
    second = job.agent()
    assert second.wait() == 1
    assert "already; this agent does not collect" in second.output()

    new = job.worker()
    new.tell("count my_app batches 100")
    gateway.wait_for("my_app_batches", 110)
    old.kill()
    new.kill()
    wait_until(lambda: segment_files(segments) == [] and (segments / "agent.state").exists(), "the state in the directory")
    agent.kill()
    job.agent()
    worker = job.worker()
    worker.tell("count my_app batches 1000")
    gateway.wait_for("my_app_batches", 1110)


def test_segment_that_another_agent_refuses_counts_from_the_state_and_once(job, gateway, tmp_path):
    state = f"--state-dir={tmp_path / 'state'}"
    agent = job.agent(state)
    worker = job.worker()
    worker.tell("count my_app batches 7")
    gateway.wait_for("my_app_batches", 7)
    agent.kill()

    agent = job.agent(state, "--max-segment-bytes=64KiB")
    wait_for_log(agent, "raise max_segment_bytes")
    seen = agent.metrics()
    assert seen.one("my_app_batches") == 7
    assert seen.one("persia_agent_segments", state="orphaned") == 1
    agent.kill()

    job.agent(state)
    worker.tell("count my_app batches 1")
    gateway.wait_for("my_app_batches", 8)


def test_segments_that_were_refused_for_want_of_descriptors_are_read_later(job, gateway):
    agent = job.agent()
    job.worker().tell("count my_app batches 1")
    gateway.wait_for("my_app_batches", 1)
    limits = resource.prlimit(agent.pid, resource.RLIMIT_NOFILE)
    descriptors = max(int(fd.name) for fd in Path(f"/proc/{agent.pid}/fd").iterdir())
    resource.prlimit(agent.pid, resource.RLIMIT_NOFILE, (descriptors + 3, limits[1]))
    for _ in range(5):
        job.worker().tell("count my_app batches 1")
    wait_for_log(agent, "cannot open it: Too many open files")
    resource.prlimit(agent.pid, resource.RLIMIT_NOFILE, limits)
    gateway.wait_for("my_app_batches", 6)


def test_volume_that_hangs_delays_nothing_but_the_state(job, gateway, tmp_path):
    (tmp_path / "state").mkdir(mode=0o700)
    agent = job.exec_worker(f"--state-dir={tmp_path}/state", env=slow("fdatasync", seconds=600))
    for counted in range(1, 4):
        agent.tell("count my_app batches 1")
        gateway.wait_for("my_app_batches", counted)
        wait_until(lambda: agent.metrics().one("my_app_batches") == counted, "the count on the agent")
    wait_until(lambda: agent.metrics().one("persia_agent_state_unsaved_seconds") > 1, "the age of unsaved changes")

    def threads():
        return len(os.listdir(f"/proc/{agent_of(agent)}/task"))

    before = threads()
    for counted in range(4, 9):
        agent.tell("count my_app batches 1")
        gateway.wait_for("my_app_batches", counted)
    # Threads that probe the machine live for a moment.
    wait_until(lambda: threads() <= before, "one thread that waits for the disk, not one for each push")


def test_volume_that_hangs_when_it_is_looked_at_delays_no_push(job, gateway, tmp_path):
    (tmp_path / "state").mkdir(mode=0o700)
    agent = job.exec_worker(f"--state-dir={tmp_path}/state", env=slow("stat of groups", seconds=600))
    for counted in range(1, 6):
        agent.tell("count my_app batches 1")
        gateway.wait_for("my_app_batches", counted)


def test_idle_job_writes_no_state(job, gateway, tmp_path):
    agent = job.agent(f"--state-dir={tmp_path / 'state'}")
    job.worker().tell("count my_app batches 1")
    gateway.wait_for("my_app_batches", 1)

    def written_in_five_collections():
        seen = agent.metrics()
        agent.await_collections(6)
        return agent.metrics().one("persia_agent_state_written_bytes_total") - seen.one("persia_agent_state_written_bytes_total")

    assert agent.metrics().one("persia_agent_state_written_bytes_total") > 0
    wait_until(lambda: written_in_five_collections() == 0, "a job that does nothing to write nothing")
