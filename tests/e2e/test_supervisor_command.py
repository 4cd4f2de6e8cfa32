"""The command of `exec` inherits the same, starts and runs as without a supervisor, even if other parts fail."""

import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from conftest import AGENT, Agent, environment
from servers import Process, free_port, wait_until
from supervised import CLOSE_RANGE, SLEEP, agent_of, command_of, refusing, slow, state, wait_for_agent, wait_for_output


@pytest.mark.parametrize("starter", [[], refusing(CLOSE_RANGE)], ids=["", "without-close_range"])
def test_descriptor_that_the_command_closes_is_closed(job, segments, starter):
    """Its other end sees the end of file while the job runs: neither the supervisor nor the agent has a copy."""
    ready, notify = os.pipe()
    flags = job.flags("off", ["--push-timeout=0.5"])
    script = f"exec {notify}>&- >&-; exec sleep 600"
    exec_ = subprocess.Popen(
        [*starter, AGENT, "exec", *flags, "--", "bash", "-c", script],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=[notify],
    )
    os.close(notify)
    try:
        agent = wait_for_agent(exec_)
        os.set_blocking(ready, False)
        os.set_blocking(exec_.stdout.fileno(), False)
        for end in (ready, exec_.stdout.fileno()):
            assert wait_until(lambda end=end: [os.read(end, 1)], "the end of file") == [b""]
        assert agent_of(exec_) == agent
    finally:
        exec_.terminate()
        assert exec_.wait(30) == 128 + signal.SIGTERM
        os.close(ready)


def test_closed_standard_descriptors_stay_closed_and_take_no_log_lines(segments, tmp_path):
    """A log line in the supervisor's own memory would replace the finish timeout."""
    script = f"ls -l /proc/$$/fd >{tmp_path}/fds; echo $$ >{tmp_path}/pid; exec sleep 600"
    flags = ["--gateway=127.0.0.1:9", f"--metrics-dir={segments}/job", "--listen=off", "--push-timeout=1"]
    exec_ = subprocess.Popen(
        ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", AGENT, "exec", *flags, "--", "sh", "-c", script], env=environment()
    )
    try:
        first = wait_for_agent(exec_)
        os.kill(first, signal.SIGKILL)
        agent = wait_for_agent(exec_, first)
        assert {os.readlink(f"/proc/{agent}/fd/{number}") for number in (0, 1, 2)} == {"/dev/null"}
        os.kill(agent, signal.SIGSTOP)  # it will not finish
        command = int(wait_until((tmp_path / "pid").read_text, "the command"))
        shown = (tmp_path / "fds").read_text()
        assert "/dev/null" not in shown and "memfd" not in shown
        os.kill(command, signal.SIGTERM)
        assert exec_.wait(15) == 128 + signal.SIGTERM
    finally:
        exec_.kill()
        exec_.wait()


def test_command_is_known_although_the_preparation_hangs(job, started, tmp_path):
    """Without `--`, only the agent's program knows that a switch has no value."""
    address = f"127.0.0.1:{free_port()}"
    words = ["exec", *job.flags(address, []), "--web.enable-lifecycle", "sh", "-c", "echo it ran; exit 4"]
    exec_ = Agent(words, tmp_path / "log", environment(**slow("mkdirat")), address)
    started(exec_)
    assert exec_.wait() == 4
    assert "it ran" in exec_.output() and "not prepared after 2 s" in exec_.output()


def test_command_whose_environment_is_as_large_as_can_be_starts(public_folder, segments):
    """The variables of the metrics do not fit behind it any more; the kernel would refuse them with E2BIG."""
    settings = f"job_name: {'j' * 200}\n  metrics_dir: {segments}/job\n  gateway: 127.0.0.1:9\n  listen_address: 'off'\n  push_timeout_seconds: 0.1\n"
    (public_folder / "c").write_text("PersiaMetricsConfig:\n  " + settings)

    def run(program, size):
        """Its exit code; None if the kernel refuses it."""
        filling = {f"FILL{i}": "x" * 100_000 for i in range(size // 100_000)} | {"LAST": "x" * (size % 100_000)}
        words = [program, "exec", "--config=c", "true"]
        try:
            return subprocess.run(words, env=environment(**filling), cwd=public_folder, stderr=subprocess.DEVNULL, timeout=60).returncode
        except OSError:
            return None

    (public_folder / "nothing").symlink_to("/bin/true")
    (public_folder / "agents_").symlink_to("persia-metrics-agent")
    fits, too_large = 0, 100_000_000
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        fits, too_large = (fits, middle) if run("./nothing", middle) is None else (middle, too_large)
    codes = {less: run("./agents_", fits - less) for less in range(20, 600, 40)}
    assert set(codes.values()) == {0}, codes


DIE_WITH_STARTER = """
import ctypes, subprocess, sys
subprocess.run(sys.argv[1:], preexec_fn=lambda: ctypes.CDLL(None).prctl(1, 9))
"""


def test_command_that_is_to_be_killed_with_its_starter_is(segments, tmp_path):
    flags = ["--gateway=127.0.0.1:9", f"--metrics-dir={segments}/job", "--listen=off", "--push-timeout=0.5"]
    with open(tmp_path / "log", "w") as log:
        starter = subprocess.Popen(
            ["/usr/bin/python3", "-c", DIE_WITH_STARTER, AGENT, "exec", *flags, "--", "sh", "-c", SLEEP], env=environment(), stdout=log, stderr=log
        )
    wait_until(lambda: "pid " in (tmp_path / "log").read_text(), "the command")
    command = int((tmp_path / "log").read_text().partition("pid ")[2].partition(".")[0])
    starter.kill()
    starter.wait()
    try:
        wait_until(lambda: state(command) == "Z", "the command to be killed")
    finally:
        if state(command) != "Z":
            os.kill(command, signal.SIGKILL)


IS_SUBREAPER = """
import ctypes
answer = ctypes.c_int(-1)
ctypes.CDLL(None).prctl(37, ctypes.byref(answer), 0, 0, 0)  # PR_GET_CHILD_SUBREAPER
print(answer.value)
"""


@pytest.mark.needs("other-users")
def test_supervisor_that_becomes_the_command_adopts_no_orphans(public_folder, segments):
    """The kernel hands the attribute on to the program that is executed, which would not reap them."""
    segments.chmod(0o777)
    limited = ["setpriv", "--reuid=54399", "--clear-groups", "prlimit", "--nproc=1:1"]
    done = subprocess.run(
        [*limited, public_folder / "persia-metrics-agent", "exec", "--", "/usr/bin/python3", "-c", IS_SUBREAPER],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


def start(folder, segments, started, log, *flags, command):
    flags = ["--gateway=127.0.0.1:9", f"--metrics-dir={segments}/job", "--listen=off", *flags]
    exec_ = Process([folder / "persia-metrics-agent", "exec", *flags, "--", "sh", "-c", command], log, env=environment())
    started(exec_)
    return exec_


def test_pipe_without_an_agent_is_emptied(public_folder, segments, started, tmp_path):
    """Writers would wait for a reader in vain."""
    script = "until test -e go; do sleep 0.02; done; yes | head -c 1000000 >fifo; exit 4"
    exec_ = start(public_folder, segments, started, tmp_path / "log", f"--fifo={tmp_path}/fifo", "--push-timeout=1", command=f"cd {tmp_path}; {script}")
    agent = wait_for_agent(exec_)
    (public_folder / "persia-metrics-agentd").unlink()
    os.kill(agent, signal.SIGKILL)
    wait_for_output(exec_, "exit code 127")
    (tmp_path / "go").touch()
    assert exec_.wait() == 4


def test_libraries_of_the_jobs_environment_are_not_the_agents(job, gateway, tmp_path):
    """As after `conda activate`, with an older libstdc++ than the system's."""
    (tmp_path / "libstdc++.so.6").write_text("of another system")
    env = {"LD_LIBRARY_PATH": str(tmp_path)}
    exec_ = job.exec("sh", "-c", "echo path $LD_LIBRARY_PATH.", env=env)
    assert exec_.wait() == 0
    assert f"path {tmp_path}." in exec_.output()
    assert gateway.metrics().one("persia_exec_exit_code") == 0, exec_.output()
    checked = subprocess.run([AGENT, "check-config"], env=environment(**env), capture_output=True, text=True, cwd=tmp_path)
    assert checked.returncode == 0 and checked.stderr == ""


def test_secrets_are_for_the_agent_alone(job):
    with socket.create_server(("127.0.0.1", 0)) as gateway, socket.create_server(("127.0.0.1", 0)) as database:
        secrets = {
            "PERSIA_METRICS_GATEWAY_BEARER_TOKEN": "hunter3",
            "PERSIA_METRICS_REMOTE_WRITE_URL": f"http://127.0.0.1:{database.getsockname()[1]}/write?token=hunter4",
        }
        exec_ = job.exec("sh", "-c", f"env; {SLEEP}", flags=[f"--gateway=127.0.0.1:{gateway.getsockname()[1]}"], env=secrets)
        command = command_of(exec_)
        for server, sent in ((gateway, b"Authorization: Bearer hunter3"), (database, b"POST /write?token=hunter4 HTTP/1.1")):
            server.settimeout(30)
            with server.accept()[0] as request:
                request.settimeout(30)
                assert sent in request.recv(4096)
    assert not any(name in exec_.output() for name in secrets)
    for pid in (exec_.pid, command):
        assert b"hunter" not in Path(f"/proc/{pid}/environ").read_bytes()


def test_script_without_an_interpreter_line_is_run_by_the_shell(job, tmp_path):
    script = tmp_path / "train"
    script.write_text('echo "$0 $1"; exit 5\n')
    script.chmod(0o755)
    by_path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for name, env in ((str(script), {}), ("train", by_path)):
        exec_ = job.exec(name, "two words", env=env)
        assert exec_.wait() == 5
        assert f"{script} two words" in exec_.output()


def test_restarts_are_farther_and_farther_apart(public_folder, segments, started, tmp_path):
    exec_ = start(public_folder, segments, started, tmp_path / "log", "--push-timeout=0.1", command=SLEEP)
    agent = wait_for_agent(exec_)
    (public_folder / "persia-metrics-agentd").unlink()
    os.kill(agent, signal.SIGKILL)
    waits = [f"is started again in {100 * 2**i} ms" for i in range(5)]
    wait_for_output(exec_, waits[-1])
    places = [exec_.output().index(wait) for wait in waits]
    assert places == sorted(places)
    exec_.signal(signal.SIGTERM)
    assert exec_.wait() == 128 + signal.SIGTERM


def test_orphan_of_the_command_is_its_child(job):
    exec_ = job.exec("sh", "-c", f"(sh -c 'echo orphan $$.; exec sleep 600' &); {SLEEP}")
    command_of(exec_)
    wait_for_output(exec_, "orphan ")
    orphan = int(exec_.output().partition("orphan ")[2].partition(".")[0])

    def has_new_parent():
        parent = int(Path(f"/proc/{orphan}/stat").read_text().rpartition(")")[2].split()[1])
        if parent == exec_.pid:
            return True
        name = Path(f"/proc/{parent}/cmdline").read_bytes().replace(bytes(1), b" ")
        raise ValueError(f"{orphan} has the parent {parent}, {name}, not {exec_.pid}, which {'runs' if exec_.running() else 'has ended'}")

    wait_until(has_new_parent, "its new parent")
    os.kill(orphan, signal.SIGTERM)
    exec_.signal(signal.SIGTERM)
    assert exec_.wait() == 128 + signal.SIGTERM


def test_agent_has_a_session_of_its_own(job):
    exec_ = job.exec("sh", "-c", SLEEP)
    agent = wait_for_agent(exec_)
    wait_until(lambda: os.getsid(agent) == agent, "the agent's session")
