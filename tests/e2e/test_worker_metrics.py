"""What the agent tells of the workers' processes and of the command that it runs, without a word from them."""

import re
import signal
import time

import pytest
from conftest import BUILD
from servers import fetch, wait_until

WALL_CLOCK = BUILD / "tests/e2e/worker/libwall_clock.so"


@pytest.mark.parametrize("end, code", [("exit 0", 0), ("exit 3", 3), ("kill -KILL $$", 128 + signal.SIGKILL)])
def test_the_commands_exit_code_is_in_the_last_push(job, gateway, end, code):
    assert job.exec("sh", "-c", end).wait() == code
    shown = gateway.metrics()
    assert shown.one("persia_exec_exit_code", role="agent") == code
    assert shown.one("persia_exec_running", role="agent") == 0


def test_run_time_grows_while_the_command_runs_and_there_is_no_exit_code(job, gateway):
    agent = job.exec_worker()
    agent.tell("count my_app batches 1")
    gateway.wait_for("persia_exec_running", 1, role="agent")
    first = gateway.metrics().one("persia_exec_run_time_seconds")
    wait_until(lambda: gateway.metrics().one("persia_exec_run_time_seconds") > first, "the run time to grow")
    assert gateway.metrics().one("persia_exec_exit_code") is None
    agent.leave()
    last = gateway.metrics()
    assert last.one("persia_exec_run_time_seconds") > first and last.one("persia_exec_exit_code") == 0


def test_an_agent_beside_a_job_runs_no_command(job, gateway):
    agent = job.agent()
    gateway.wait_for("persia_agent_segments", 0, state="live")
    assert "persia_agent_" in agent.metrics().text
    assert "persia_exec_" not in agent.metrics().text


def test_a_clock_that_is_set_disturbs_nothing(job, gateway, tmp_path):
    shift = tmp_path / "shift"
    shift.write_text("0")
    agent = job.exec_worker(env={"LD_PRELOAD": str(WALL_CLOCK), "WALL_CLOCK_SHIFT": str(shift)})
    agent.tell("count my_app batches 1")
    gateway.wait_for("my_app_batches", 1)
    for count, seconds in enumerate((-86400, 86400, -7200, 0), start=2):
        shift.write_text(str(seconds))
        agent.tell("count my_app batches 1")
        gateway.wait_for("my_app_batches", count)
        said = gateway.metrics().one("persia_agent_last_push_success_timestamp_seconds")
        wait_until(lambda: gateway.metrics().one("persia_agent_last_push_success_timestamp_seconds") != said, "a push later")
        said = gateway.metrics().one("persia_agent_last_push_success_timestamp_seconds")
        assert abs(said - time.time() - seconds) < 60, "what is shown is the wall clock"
        assert fetch(agent.url + "/-/healthy")[0] == 200
        shown = agent.metrics()
        assert 0 <= shown.one("persia_exec_run_time_seconds") < 300
        for histogram in ("collect_duration", "push_duration"):
            assert 0 <= shown.one(f"persia_agent_{histogram}_seconds_sum") < 60
    assert agent.leave() == 0


def test_the_age_of_the_last_push_is_not_the_clocks(job, gateway, tmp_path):
    shift = tmp_path / "shift"
    shift.write_text("0")
    agent = job.exec_worker("--push-timeout=0.5", env={"LD_PRELOAD": str(WALL_CLOCK), "WALL_CLOCK_SHIFT": str(shift)})
    gateway.wait_for("persia_exec_running", 1)
    gateway.kill()
    wait_until(lambda: "did not arrive" in agent.output(), "the agent's line on the lost gateway")
    for seconds in (-3600, 3600):
        shift.write_text(str(seconds))
        assert 0 <= int(re.search(r"\((-?\d+) s ago\)", fetch(agent.url + "/")[1])[1]) < 60
    agent.leave()
