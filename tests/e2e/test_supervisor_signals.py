"""Signals to the supervisor of `exec`: the command gets each as it would without a supervisor, at any time."""

import ctypes
import os
import pty
import signal
import subprocess

import pytest
from conftest import AGENT, environment
from servers import Process, wait_until
from supervised import SLEEP, Terminal, children, command_of, pending, slow, state, wait_for_agent, wait_for_output

# An agent without a gateway and without pages.
QUIET = "--gateway=127.0.0.1:9 --listen=off --push-timeout=0.5 --log-level=error"


def test_alarm_set_before_the_start_ends_the_command(job):
    """The kernel sends SIGALRM to one process, and not, as a terminal's signals, to its group."""
    flags = job.flags("off", ["--push-timeout=0.5"])
    done = subprocess.run(["perl", "-e", "alarm 1; exec @ARGV", AGENT, "exec", *flags, "--", "sleep", "20"], env=environment(), timeout=60)
    assert done.returncode == 128 + signal.SIGALRM


def test_hang_up_of_its_own_terminal_reaches_the_command(segments, tmp_path):
    """The kernel sends the signal only to the leader of the session."""
    pid, terminal = pty.fork()
    if pid == 0:
        script = f"trap 'trap : TERM; echo caught >{tmp_path}/caught; exit 3' HUP; echo ready; while :; do sleep 0.02; done"
        os.execve(AGENT, [AGENT, "exec", *QUIET.split(), f"--metrics-dir={segments}/job", "--", "sh", "-c", script], environment())
    seen = b""
    while b"ready" not in seen:
        seen += os.read(terminal, 4096)
    os.close(terminal)
    try:
        wait_until((tmp_path / "caught").exists, "the command to get SIGHUP")
    finally:
        os.kill(pid, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3


HANDLE_STOP = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTSTP})
print(f"ready {os.getpid()}.", flush=True)
while signal.sigwait({signal.SIGTSTP}):
    print("checkpoint.", flush=True)
"""


def start_in_terminal(terminal, segments, command):
    terminal.type(f"{AGENT} exec {QUIET} --metrics-dir={segments}/job -- {command}\n")
    pid = int(terminal.expect(r"ready (\d+)\.")[1])
    return pid, int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])


def test_it_stops_only_with_the_command(segments, tmp_path):
    """A command may handle Ctrl-Z, for one by a checkpoint."""
    (tmp_path / "job.py").write_text(HANDLE_STOP)
    with Terminal() as terminal:
        _, supervisor = start_in_terminal(terminal, segments, f"/usr/bin/python3 {tmp_path}/job.py")
        terminal.type("\x1a")
        terminal.expect("checkpoint")
        os.kill(supervisor, signal.SIGTERM)
        terminal.type("echo code $?.\n")
        assert terminal.expect(r"code (\d+)\.")[1] == str(128 + signal.SIGTERM)


def test_stop_that_is_sent_to_it_stops_both(segments):
    with Terminal() as terminal:
        command, supervisor = start_in_terminal(terminal, segments, "sh -c 'echo ready $$.; exec sleep 600'")
        os.kill(supervisor, signal.SIGTSTP)
        terminal.expect("Stopped")
        assert state(command) == state(supervisor) == "T"
        terminal.type("fg\n")
        wait_until(lambda: "T" not in (state(command), state(supervisor)), "both to continue")
        os.kill(supervisor, signal.SIGTERM)
        terminal.type("echo code $?.\n")
        assert terminal.expect(r"code (\d+)\.")[1] == str(128 + signal.SIGTERM)


def test_stop_during_the_preparation_stops_the_command(segments, tmp_path):
    """The terminal has sent its signal to a group of which the command was not a member yet."""
    with Terminal(**slow("mkdirat")) as terminal:
        terminal.type(f"{AGENT} exec {QUIET} --metrics-dir={segments}/job -- sh -c 'echo $$ >{tmp_path}/pid; exec sleep 600'; echo stopped $?.\n")
        supervisor = wait_until(lambda: next((pid for pid in children(terminal.pid) if children(pid)), None), "the preparation")
        terminal.type("\x1a")
        terminal.expect(rf"stopped {128 + signal.SIGTSTP}\.")
        wait_until(lambda: set(children(supervisor).values()) - {"Z"} == {"T"}, "the command to stop")
        assert state(supervisor) == "T"
        terminal.type("fg\n")
        wait_until((tmp_path / "pid").exists, "the command to continue")
        os.kill(supervisor, signal.SIGTERM)
        terminal.type("echo code $?.\n")
        assert terminal.expect(r"code (\d+)\.")[1] == str(128 + signal.SIGTERM)


def test_interrupt_during_the_preparation_ends_it_at_once(job):
    exec_ = job.exec("sh", "-c", "echo started", env=slow("mkdirat"))
    wait_until(lambda: children(exec_.pid), "the preparation")
    os.killpg(exec_.pid, signal.SIGINT)
    assert exec_.wait() == 128 + signal.SIGINT
    assert "started" not in exec_.output() and "not prepared" not in exec_.output()
    assert not exec_.group_members()


@pytest.mark.parametrize("how", ["blocked", "ignored"])
def test_signal_that_the_starter_turned_off_does_not_end_the_preparation(job, how):
    """Both are inherited by the command, which decides."""
    previous = signal.getsignal(signal.SIGTERM)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM} if how == "blocked" else set())
    if how == "ignored":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        exec_ = job.exec("/usr/bin/python3", "-c", SHOW_SIGNALS, env=slow("mkdirat"))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGTERM, previous)
    wait_until(lambda: children(exec_.pid), "the preparation")
    exec_.signal(signal.SIGTERM)
    assert exec_.wait() == 0, exec_.output()
    assert f"{how}." in exec_.output()


SHOW_SIGNALS = """
import signal
if signal.getsignal(signal.SIGTERM) == signal.SIG_IGN:
    print("ignored.")
elif signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, []):
    signal.sigwait([signal.SIGTERM])
    print("blocked.")
"""

# Prints the value that came with a signal. signal.sigwaitinfo leaves it out.
SHOW_VALUE = """
import ctypes, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN})
print("ready", flush=True)
wanted = ctypes.c_uint64(1 << signal.SIGRTMIN - 1)
info = (ctypes.c_int * 32)()
ctypes.CDLL(None).sigwaitinfo((ctypes.c_uint64 * 16)(wanted), info)
print(f"value {info[6]}.")
"""


def test_value_of_a_signal_reaches_the_command(job):
    exec_ = job.exec("/usr/bin/python3", "-c", SHOW_VALUE)
    wait_for_output(exec_, "ready")
    assert ctypes.CDLL(None).sigqueue(exec_.pid, int(signal.SIGRTMIN), ctypes.c_void_p(4711)) == 0
    assert exec_.wait() == 0
    assert "value 4711." in exec_.output()


def test_second_signal_ends_the_wait_for_an_agent_that_cannot_start(public_folder, segments, started, tmp_path):
    flags = ["--gateway=127.0.0.1:9", f"--metrics-dir={segments}/job", "--listen=off", "--push-timeout=300"]
    exec_ = Process([public_folder / "persia-metrics-agent", "exec", *flags, "--", "sh", "-c", SLEEP], tmp_path / "log", env=environment())
    started(exec_)
    command, agent = command_of(exec_), wait_for_agent(exec_)
    (public_folder / "persia-metrics-agentd").unlink()
    os.kill(agent, signal.SIGKILL)
    os.kill(command, signal.SIGTERM)
    wait_until(lambda: exec_.output().count("exit code 127") > 1, "the agent to fail while it is to finish")

    exec_.signal(signal.SIGTERM)  # as the command got it: not a second one
    wait_until(lambda: "is started again in 3200 ms" in exec_.output(), "a time without an agent")
    exec_.signal(signal.SIGTERM)
    assert exec_.wait() == 128 + signal.SIGTERM


def test_interrupt_of_the_group_is_not_a_second_one_if_the_command_ends_first(job):
    """The supervisor sees the command's end before its own SIGINT: it is stopped meanwhile."""
    exec_ = job.exec("sh", "-c", SLEEP, flags=["--push-timeout=20"])
    command, agent = command_of(exec_), wait_for_agent(exec_)
    wait_until(lambda: "job " in exec_.output(), "the agent's first line")
    os.kill(agent, signal.SIGSTOP)  # it cannot finish before the supervisor's signal
    os.kill(command, signal.SIGINT)
    wait_until(lambda: command not in children(exec_.pid), "the supervisor to see it")
    exec_.signal(signal.SIGINT)
    wait_until(lambda: not pending(exec_.pid, signal.SIGINT), "the supervisor to take it")
    wait_until(lambda: not pending(exec_.pid, signal.SIGCHLD), "the supervisor to be idle")
    assert not pending(agent, signal.SIGTERM)
    exec_.signal(signal.SIGINT)
    wait_until(lambda: pending(agent, signal.SIGTERM), "a second one to reach the agent")
    os.kill(agent, signal.SIGCONT)
    assert exec_.wait() == 128 + signal.SIGINT
