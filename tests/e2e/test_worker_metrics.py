"""What the agent tells of the workers' processes and of the command that it runs, without a word from them."""

import signal

import pytest
from servers import wait_until


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
