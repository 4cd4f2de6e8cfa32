"""The supervisor of `exec`: even if the agent fails, the command starts, receives its signals, and returns its exit code."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import needs
import pytest
from conftest import AGENT, ROOT, environment
from servers import wait_until
from supervised import Terminal, agent_of, children, pending, slow, state, wait_for_agent, wait_for_output

# Prints each signal that it gets, and ends with 3 at a SIGRTMAX.
PRINT_SIGNALS = """
import signal
wanted = set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}
signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
print("ready", flush=True)
while True:
    number = signal.sigwait(wanted)
    print(f"got {int(number)}.", flush=True)
    if number == signal.SIGRTMAX:
        raise SystemExit(3)
"""


@pytest.mark.parametrize("chosen", [range(1, 32), range(34, 65)], ids=["standard", "real-time"])
def test_every_signal_reaches_the_command(job, chosen):
    exec_ = job.exec("/usr/bin/python3", "-c", PRINT_SIGNALS)
    wait_for_output(exec_, "ready")
    for number in chosen:
        if number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGCONT, signal.SIGRTMAX):
            continue
        exec_.signal(number)
        wait_for_output(exec_, f"got {number}.")
        if number in (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
            exec_.signal(signal.SIGCONT)
            wait_until(lambda: exec_.output().count(f"got {int(signal.SIGCONT)}.") > 0, "SIGCONT")
    exec_.signal(signal.SIGRTMAX)
    assert exec_.wait() == 3


@pytest.mark.parametrize("number", [32, 33])
def test_signals_of_threads_reach_the_command(job, number):
    exec_ = job.exec("sh", "-c", "echo ready; exec sleep 600")
    wait_for_output(exec_, "ready")
    os.kill(exec_.pid, number)
    assert exec_.wait() == 128 + number


def test_it_is_small_and_has_one_thread(job):
    exec_ = job.exec("sh", "-c", "echo ready; exec sleep 600")
    wait_for_output(exec_, "ready")
    wait_for_agent(exec_)
    status = Path(f"/proc/{exec_.pid}/status").read_text()
    assert int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) < 300
    assert re.search(r"Threads:\s+(\d+)", status)[1] == "1"
    assert b"libc" not in Path(f"/proc/{exec_.pid}/maps").read_bytes(), "not static"


def test_its_code_can_be_read_at_one_sitting():
    sources = sorted((ROOT / "agent/supervisor").glob("*.cc"))
    code = [line for file in sources for line in file.read_text().splitlines() if line.strip() and not line.strip().startswith("//")]
    assert len(sources) > 3 and len(code) < 500


def test_killed_agent_is_started_again_and_loses_nothing(job, gateway):
    exec_ = job.exec_worker()
    exec_.tell("count my_app batches 5")
    gateway.wait_for("my_app_batches", 5)
    first = wait_for_agent(exec_)
    os.kill(first, signal.SIGKILL)
    exec_.tell("count my_app batches 2")
    wait_for_agent(exec_, first)
    gateway.wait_for("my_app_batches", 7)
    gateway.wait_for("persia_agent_restarts_total", 1)
    assert "the agent ended by signal 9 and is started again" in exec_.output()
    assert exec_.leave() == 0
    assert gateway.metrics().one("my_app_batches") == 7
    assert gateway.metrics().one("persia_exec_exit_code") == 0


def test_agent_that_is_killed_all_the_time_costs_nothing(job, gateway):
    exec_ = job.exec_worker()
    total = 0
    end = time.monotonic() + 6
    killed = set()
    while time.monotonic() < end or len(killed) <= 3:
        exec_.tell("count my_app batches 1")
        total += 1
        if (pid := agent_of(exec_)) is not None:
            with contextlib.suppress(ProcessLookupError):  # the one that was killed before has ended now
                os.kill(pid, signal.SIGKILL)
            killed.add(pid)
        time.sleep(0.05)
    assert exec_.leave() == 0
    assert gateway.metrics().one("my_app_batches") == total


def test_killed_supervisor_takes_the_agent_along_and_leaves_the_command(job):
    exec_ = job.exec("sh", "-c", "trap 'echo alive; exit' USR1; echo pid $$.; while :; do sleep 0.02; done")
    wait_for_output(exec_, "pid ")
    command = int(re.search(r"pid (\d+)\.", exec_.output())[1])
    agent = wait_for_agent(exec_)
    exec_.signal(signal.SIGKILL)
    exec_.wait()
    wait_until(lambda: state(agent) == "Z", "the agent to end")
    os.kill(command, signal.SIGUSR1)
    wait_for_output(exec_, "alive")


def test_hung_agent_does_not_hold_the_exit_code_back(job):
    exec_ = job.exec("sh", "-c", "echo ready; exec sleep 600", flags=["--push-timeout=1"])
    wait_for_output(exec_, "ready")
    agent = wait_for_agent(exec_)
    os.kill(agent, signal.SIGSTOP)  # like an agent that waits for a dead disk
    os.kill(next(pid for pid in children(exec_.pid) if pid != agent), signal.SIGTERM)
    assert exec_.wait(15) == 128 + signal.SIGTERM
    assert "did not finish in 2000 ms" in exec_.output()
    wait_until(lambda: state(agent) == "Z", "the kernel to end the agent")


def test_second_signal_interrupts_the_last_push(job):
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never answers
        gateway = f"--gateway=127.0.0.1:{silent.getsockname()[1]}"
        exec_ = job.exec("sh", "-c", "echo ready; exec sleep 600", flags=[gateway, "--push-timeout=50"])
        wait_for_output(exec_, "ready")
        wait_until(lambda: "job " in exec_.output(), "the agent's first line")
        exec_.signal(signal.SIGTERM)
        wait_until(lambda: len(children(exec_.pid)) == 1, "the command to end")
        exec_.signal(signal.SIGTERM)
        assert exec_.wait() == 128 + signal.SIGTERM
    assert "the push was interrupted" in exec_.output()


def test_signal_to_all_processes_does_not_interrupt_the_last_push(job, gateway):
    """systemd and Slurm send SIGTERM to the supervisor, the command and the agent, in any order."""
    exec_ = job.exec("sh", "-c", "echo ready; exec sleep 600", flags=["--push-timeout=50"])
    wait_for_output(exec_, "ready")
    gateway.wait_for("persia_exec_running", 1)
    agent = wait_for_agent(exec_)
    os.kill(gateway.server.pid, signal.SIGSTOP)
    exec_.signal(signal.SIGTERM)
    wait_until(lambda: children(exec_.pid).keys() == {agent}, "the command to end")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        os.kill(agent, number)
        wait_until(lambda number=number: not pending(agent, number), "the agent to take it")
    os.kill(gateway.server.pid, signal.SIGCONT)
    assert exec_.wait() == 128 + signal.SIGTERM
    assert gateway.metrics().one("persia_exec_exit_code") == 128 + signal.SIGTERM, exec_.output()


def test_preparation_that_hangs_costs_the_metrics_alone(job):
    exec_ = job.exec("sh", "-c", "echo enabled $PERSIA_METRICS_ENABLED.; exit 4", env=slow("mkdirat"))
    assert exec_.wait() == 4
    assert "the metrics are not prepared after 2 s; the command runs without metrics" in exec_.output()
    assert "enabled 0." in exec_.output()


def test_signal_during_the_preparation_ends_it_without_a_command(job):
    exec_ = job.exec("sh", "-c", "echo started", env=slow("mkdirat"))
    wait_until(lambda: children(exec_.pid), "the preparation")
    exec_.signal(signal.SIGTERM)
    assert exec_.wait() == 128 + signal.SIGTERM
    assert "started" not in exec_.output()


def test_disk_that_hangs_does_not_hold_the_exit_code_back(job, gateway, tmp_path):
    (tmp_path / "state").mkdir(mode=0o700)
    exec_ = job.exec("sh", "-c", "exit 7", flags=[f"--state-dir={tmp_path}/state", "--push-timeout=1"], env=slow("fdatasync"))
    assert exec_.wait(30) == 7


def test_missing_agent_program_costs_the_metrics_alone(public_folder):
    (public_folder / "persia-metrics-agentd").unlink()
    for words, output in ((["--", "echo", "hi"], "hi"), (["echo", "hi"], "hi"), (["--job", "x", "echo", "hi"], "hi")):
        done = subprocess.run(
            [public_folder / "persia-metrics-agent", "exec", *words], env=environment(), capture_output=True, text=True, timeout=30
        )
        assert (done.returncode, done.stdout.strip()) == (0, output)
        assert "persia-metrics-agentd, which must be in the directory of persia-metrics-agent" in done.stderr
    done = subprocess.run([public_folder / "persia-metrics-agent", "run"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 127 and "persia-metrics-agentd" in done.stderr


@pytest.mark.needs("other-users")
@pytest.mark.parametrize("processes", [1, 2, 3, 4, 8, 20])
def test_limit_of_processes_costs_the_metrics_alone(public_folder, segments, processes):
    user = 54321 + processes  # the limit counts the processes of a user
    segments.chmod(0o777)
    limited = ["setpriv", f"--reuid={user}", "--clear-groups", "prlimit", f"--nproc={processes}:{processes}"]
    flags = ["--gateway=127.0.0.1:9", f"--metrics-dir={segments}/job", "--listen=off", "--push-timeout=0.5"]
    done = subprocess.run(
        [*limited, public_folder / "persia-metrics-agent", "exec", *flags, "--", "/usr/bin/python3", "-c", "import time; time.sleep(1); print('result'); raise SystemExit(6)"],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (6, "result\n"), done.stderr
    assert "terminate called" not in done.stderr
    if processes <= 3:
        assert "cannot start" in done.stderr


SPAWN_ORPHANS = """
import os, time
for _ in range(1000):
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            os._exit(5)
        os._exit(0)
    os.waitpid(child, 0)
print("spawned", flush=True)
time.sleep(600)
"""


def test_a_thousand_orphans_are_reaped(job):
    exec_ = job.exec("/usr/bin/python3", "-c", SPAWN_ORPHANS)
    wait_for_output(exec_, "spawned", 120)
    wait_until(lambda: len(children(exec_.pid)) <= 2, "the orphans to be reaped")
    assert int(re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{exec_.pid}/status").read_text())[1]) < 300


@pytest.mark.needs("namespaces")
def test_as_process_1_it_reaps_forwards_and_ends(tmp_path, segments):
    script = """
        (sh -c 'sleep 0.1' &) ; trap 'echo caught; exit 9' TERM; echo pid $PPID.; kill -TERM $PPID
        while :; do sleep 0.02; done"""
    flags = ["--gateway=127.0.0.1:9", f"--metrics-dir={segments}/job", "--listen=off", "--push-timeout=0.5"]
    done = subprocess.run(
        needs.in_namespaces(str(AGENT), "exec", *flags, "--", "sh", "-c", script),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (9, "pid 1.\ncaught\n"), done.stderr


RESOLVER_THAT_HANGS = """
import os, signal, socket, subprocess, sys, time
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
open("resolv.conf", "w").write("nameserver 127.0.0.53\\noptions timeout:30 attempts:5\\n")
subprocess.run(["mount", "--bind", "resolv.conf", os.path.realpath("/etc/resolv.conf")], check=True)
silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
silent.bind(("127.0.0.53", 53))
job = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True)
print(job.stdout.readline(), end="")
silent.recv(512)  # the agent asks, and waits
job.send_signal(signal.SIGTERM)
print(job.stdout.readline(), end="")
print(job.wait())
"""


@pytest.mark.needs("namespaces")
def test_resolver_that_hangs_delays_neither_a_signal_nor_the_end(tmp_path, segments):
    """It hangs for 150 s, longer than the test waits."""
    flags = ["--gateway=metrics_gateway:9091", f"--metrics-dir={segments}/job", "--listen=off", "--push-timeout=1"]
    script = "trap 'echo caught; exit 3' TERM; echo ready; while :; do sleep 0.02; done"
    done = subprocess.run(
        needs.in_namespaces("/usr/bin/python3", "-c", RESOLVER_THAT_HANGS, str(AGENT), "exec", *flags, "--", "sh", "-c", script),
        env=environment(PATH=os.environ["PATH"] + ":/usr/sbin:/sbin"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.stdout == "ready\ncaught\n3\n", done.stderr


# sigwait, since a signal just before signal.pause() would be seen by its end only.
COUNT_INTERRUPTS = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
count = 0
print(f"ready {os.getpid()}.", flush=True)
while signal.sigwait({signal.SIGINT, signal.SIGTERM}) == signal.SIGINT:
    count += 1
    print(f"interrupt {count}.", flush=True)
raise SystemExit(count)
"""


def test_terminal_stops_continues_and_interrupts_the_job(segments, tmp_path):
    flags = f"--gateway=127.0.0.1:9 --metrics-dir={segments}/job --listen=off --push-timeout=0.5 --log-level=error"
    with Terminal() as terminal:
        (tmp_path / "job.py").write_text(COUNT_INTERRUPTS)
        terminal.type(f"{AGENT} exec {flags} -- /usr/bin/python3 {tmp_path}/job.py\n")
        command = int(terminal.expect(r"ready (\d+)\.")[1])
        supervisor = int(Path(f"/proc/{command}/stat").read_text().rpartition(")")[2].split()[1])

        terminal.type("\x1a")  # Ctrl-Z
        terminal.expect("Stopped")
        wait_until(lambda: state(command) == state(supervisor) == "T", "both to stop")
        terminal.type("fg\n")
        terminal.expect("exec")
        wait_until(lambda: "T" not in (state(command), state(supervisor)), "both to continue")
        terminal.type("\x03")  # Ctrl-C
        terminal.expect(r"interrupt 1\.")
        os.kill(supervisor, signal.SIGTERM)
        terminal.type("echo code $?.\n")
        assert terminal.expect(r"code (\d+)\.")[1] == "1", "the command got one Ctrl-C"


def test_programs_that_are_replaced_while_the_job_runs(public_folder, job, gateway):
    """As a package's upgrade does: other files under the same names. The supervisor continues, and starts the new agent."""
    exec_ = job.exec_worker(program=public_folder / AGENT.name)
    exec_.tell("count my_app batches 1")
    gateway.wait_for("my_app_batches", 1)
    first = wait_for_agent(exec_)
    for program in (AGENT, AGENT.with_name("persia-metrics-agentd")):
        shutil.copy(program, public_folder / "new")
        (public_folder / "new").rename(public_folder / program.name)
    subprocess.run(["pkill", "-KILL", "-f", f"exec-collect .*{job.segments}"], check=True, timeout=30)
    second = wait_for_agent(exec_, other_than=first)
    assert os.readlink(f"/proc/{second}/exe") == str(public_folder / "persia-metrics-agentd")
    exec_.tell("count my_app batches 2")
    gateway.wait_for("my_app_batches", 3)
    assert exec_.leave() == 0


def test_agent_refuses_the_record_of_another_supervisor(job):
    memory = os.memfd_create("record", 0)
    os.ftruncate(memory, 1 << 16)
    os.pwrite(memory, (99).to_bytes(4, "little"), 0)
    command = [AGENT.with_name("persia-metrics-agentd"), "exec-collect", str(memory), *job.flags("127.0.0.1:0", ()), "--", "true"]
    done = subprocess.run(command, pass_fds=[memory], env=environment(), capture_output=True, text=True, timeout=30)
    os.close(memory)
    assert done.returncode == 1
    assert "of another version, whose record has format 99, not 3" in done.stderr
