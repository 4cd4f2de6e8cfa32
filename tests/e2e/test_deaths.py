"""Ways to die: each is named with its cause and in words, in the log and in the last push, within 5 seconds."""

import contextlib
import json
import re
import shlex
import signal

import pytest
from conftest import AGENT, PYTHON, PYTHON_PACKAGE, Agent, agent_with_mount, environment
from memory_cgroup import memory_cgroup
from servers import fetch, free_port, wait_until
from supervised import Terminal, slow

# The program counts until the test sees it, is in its phase and step, and then dies as `{act}` says.
PROGRAM = """
import faulthandler, mmap, os, resource, signal, sys, time
from pathlib import Path
import persia_metrics
steps = persia_metrics.Counter("my_app", "steps")
persia_metrics.set_step(812)
with persia_metrics.phase("data"):
    steps.inc()
    while not Path({go!r}).exists():
        time.sleep(0.01)
    dying = Path({dying!r})
    dying.touch()
{act}
"""

OUT_OF_MEMORY = "memory = []\nwhile True:\n    memory.append(b'x' * (1 << 20))"
SIGNAL = "os.kill(os.getpid(), signal.{})\ntime.sleep(60)"
LIMIT = "resource.setrlimit(resource.RLIMIT_{0}, ({1}, {1}))\n"


class Dying:
    """The program under `exec`, whose command it is unless `shell` starts it."""

    def __init__(self, job, tmp_path, act, shell="", flags=(), program=AGENT, env=None):
        self.go, self.dying = tmp_path / "go", tmp_path / "dying"
        indented = "\n".join(f"    {line}" for line in act.splitlines())
        script = tmp_path / "train.py"
        script.write_text(PROGRAM.format(go=str(self.go), dying=str(self.dying), act=indented))
        command = [str(PYTHON), str(script)]
        if shell:
            command = ["sh", "-c", shell.format(command=shlex.join(command))]
        address = f"127.0.0.1:{free_port()}"
        env = environment(PERSIA_ROLE="trainer", PYTHONPATH=str(PYTHON_PACKAGE), **(env or {}))
        self.agent = Agent(["exec", *job.flags(address, flags), "--", *command], tmp_path / "exec.log", env, address, program)
        job._started(self.agent)
        wait_until(lambda: self.agent.metrics().one("my_app_steps") == 1, "the program")

    def die(self):
        self.go.touch()

    def end(self):
        """Waits for the end of the agent, after the last push."""
        self.die()
        self.agent.wait()
        assert "the agent did not finish" not in self.agent.output()

    def death(self):
        """The line of the log about the death."""
        (line,) = [line for line in self.agent.output().splitlines() if " died: " in line]
        return line.partition(" died: ")[2]


def causes(gateway):
    """The causes with deaths on the gateway, with their counts."""
    shown = gateway.metrics()
    series = {dict(labels)["cause"]: value for (name, labels), value in shown.items() if name == "persia_worker_deaths_total"}
    assert len(series) == 12, "each cause has a series from the start"
    return {cause: value for cause, value in series.items() if value > 0}


@pytest.mark.parametrize(
    "act, cause, words",
    [
        ("raise ValueError('bad row')", "exception", "ValueError: bad row (train.py:13 in <module>); in data, step 812"),
        ("os.write(os.open('/dev/full', os.O_WRONLY), b'x')", "disk_full", "No space left on device"),
        ("sys.exit(3)", "exit_code", "exit code 3"),
        ("os._exit(4)", "exit_code", "exit code 4; in data, step 812"),
        ("faulthandler._sigsegv()", "crash", "SIGSEGV; in data, step 812"),
        ("resource.setrlimit(resource.RLIMIT_CPU, (1, 9))\nwhile True: dying.touch()", "limit", "SIGXCPU: it used up its processor time"),
        (
            "signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n" + LIMIT.format("FSIZE", 4096) + "open('big', 'wb', 0).write(b'x' * 9999)\n"
            "open('big', 'ab', 0).write(b'x')",
            "limit",
            "SIGXFSZ: a file became too large",
        ),
        (LIMIT.format("NOFILE", 64) + "files = [open('/dev/null') for _ in range(99)]", "limit", "Too many open files"),
        (LIMIT.format("AS", 1 << 30) + "bytearray(2 << 30)", "out_of_memory", "MemoryError"),
        (SIGNAL.format("SIGHUP"), "signal", "SIGHUP; in data, step 812"),
        (SIGNAL.format("SIGKILL"), "killed", "SIGKILL (the kernel has counted no kill for lack of memory"),
    ],
    ids="exception disk-full exit-code underscore-exit segv cpu-limit file-limit descriptors address-space hup kill".split(),
)
def test_a_way_to_die_by_itself(job, gateway, tmp_path, monkeypatch, act, cause, words):
    monkeypatch.chdir(tmp_path)
    rank = Dying(job, tmp_path, act)
    rank.end()
    assert words in rank.death()
    assert "Look at: " in rank.death()
    assert causes(gateway) == {cause: 1}


def test_a_job_that_a_scheduler_ends_has_no_deaths_and_goes_on(job, gateway, tmp_path):
    rank = Dying(job, tmp_path, "")
    rank.agent.popen.send_signal(signal.SIGTERM)
    rank.agent.wait()
    said = rank.agent.output()
    assert "the job is asked to end by SIGTERM\n" in said and "has ended: SIGTERM, after SIGTERM to the job\n" in said
    assert "the command has ended with exit code 143, terminated by SIGTERM\n" in said
    assert causes(gateway) == {}
    again = job.exec("true")
    assert again.wait() == 0
    run = re.search(r"starts run (\w+)", said)[1]
    assert f"continues run {run}," in again.output()
    assert re.search(r"this is attempt 2 of the run that began at [-:\d ]+ UTC: its counts, deaths and goodput go on; to begin", again.output())


# A launcher whose ranks get Ctrl-C, too, and which tells of them by its own exit code.
LAUNCHER = """
import os, subprocess, sys
ranks = [subprocess.Popen([sys.executable, sys.argv[1]], env={**os.environ, "REPLICA_INDEX": str(rank)}) for rank in range(2)]
try:
    codes = [rank.wait() for rank in ranks]
except KeyboardInterrupt:
    codes = [rank.wait() for rank in ranks]
sys.exit(any(codes))
"""


def test_ctrl_c_is_no_death_and_ends_the_run(job, gateway, tmp_path):
    (tmp_path / "rank.py").write_text(PROGRAM.format(go=str(tmp_path / "go"), dying=str(tmp_path / "dying"), act="    pass"))
    (tmp_path / "launcher.py").write_text(LAUNCHER)
    address = f"127.0.0.1:{free_port()}"
    flags = shlex.join(job.flags(address, []))
    started = f"{AGENT} exec {flags} -- {PYTHON} {tmp_path}/launcher.py {tmp_path}/rank.py; echo code $?.\n"
    with Terminal(PERSIA_ROLE="trainer", PYTHONPATH=str(PYTHON_PACKAGE)) as terminal:
        terminal.type(started)
        first = terminal.expect(r"starts run (\w+)")[1]
        wait_until(lambda: shown(address, lambda status: len(status["workers"]) == 2), "two ranks")
        terminal.type("\x03")
        terminal.expect("the job is asked to end by SIGINT")
        for _ in range(2):
            terminal.expect(r"trainer rep_\d has ended: (SIGINT|it ended by a signal or _exit), after SIGINT to the job")
        terminal.expect("the command has ended with exit code 1, interrupted by SIGINT")
        terminal.expect(f"run {first} has ended")
        terminal.expect(r"code 1\.")
        assert causes(gateway) == {}
        terminal.type(started)
        assert terminal.expect(r"starts run (\w+)")[1] != first
        wait_until(lambda: shown(address, lambda status: len(status["workers"]) == 2), "two ranks")
        (tmp_path / "go").touch()
        terminal.expect(r"code 0\.")


def shown(address, wanted):
    with contextlib.suppress(OSError):
        return wanted(json.loads(fetch(f"http://{address}/api/v1/status")[1]))


@pytest.mark.needs("memory-cgroup")
def test_lack_of_memory_in_a_shutdown_is_a_death(job, gateway, tmp_path, cgroup):
    rank = Dying(job, tmp_path, OUT_OF_MEMORY, shell=f"trap '' TERM; {cgroup.join}; exec {{command}}")
    rank.agent.popen.send_signal(signal.SIGTERM)
    wait_until(lambda: "the job is asked to end by SIGTERM" in rank.agent.output(), "the signal")
    rank.end()
    assert rank.death().startswith("killed by the kernel for lack of memory")
    assert causes(gateway) == {"out_of_memory": 1}


def test_a_hang_that_the_launcher_ends_is_the_cause(job, gateway, tmp_path):
    act = "for _ in range(50):\n    steps.inc()\n    time.sleep(0.1)\ntime.sleep(60)"
    rank = Dying(job, tmp_path, act, flags=["--hang-after=1"])
    rank.die()
    wait_until(lambda: rank.agent.metrics().one("persia_job_hung") == 1, "the hang")
    rank.dying.touch()
    rank.agent.popen.send_signal(signal.SIGTERM)
    rank.end()
    assert rank.death().startswith("it hung for ") and "then SIGTERM ended it; in data, step 812" in rank.death()
    assert causes(gateway) == {"hang": 1}


@pytest.fixture
def cgroup():
    with memory_cgroup(96 << 20) as made:
        yield made


@pytest.mark.needs("memory-cgroup")
def test_lack_of_memory_in_a_cgroup_is_told_with_its_limit(job, gateway, tmp_path, cgroup):
    rank = Dying(job, tmp_path, OUT_OF_MEMORY, shell=f"{cgroup.join}; exec {{command}}")
    rank.end()
    assert rank.death().startswith("killed by the kernel for lack of memory (the limit of its cgroup ")
    assert f"{cgroup.path.name} is 96.0 MiB" in rank.death() and "; in data, step 812" in rank.death()
    assert causes(gateway) == {"out_of_memory": 1}


# Of the host's lack of memory, only the host's count tells; so it is for a cgroup that vanishes with its process.
@pytest.mark.needs("memory-cgroup", "pidfd-exits")
def test_lack_of_memory_is_named_if_its_cgroup_is_gone(job, gateway, tmp_path, cgroup):
    shell = f"sh -c '{cgroup.join}; exec \"$@\"' sh {{command}}; rmdir {cgroup.path}; exit 1"
    rank = Dying(job, tmp_path, OUT_OF_MEMORY, shell=shell)
    rank.end()
    assert not cgroup.path.exists()
    assert rank.death().startswith("killed by the kernel for lack of memory")
    assert causes(gateway) == {"out_of_memory": 1}


@pytest.mark.needs("memory-cgroup")
def test_sigkill_by_hand_in_a_cgroup_is_not_taken_for_lack_of_memory(job, gateway, tmp_path, cgroup):
    rank = Dying(job, tmp_path, SIGNAL.format("SIGKILL"), shell=f"{cgroup.join}; exec {{command}}")
    rank.end()
    assert causes(gateway) == {"killed": 1}


@pytest.mark.needs("mounts")
def test_sigbus_of_a_full_filesystem_in_memory_is_a_full_disk(job, gateway, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    program = agent_with_mount(tmp_path, f"mount -t tmpfs -o size=1m tmpfs {small}")
    act = (
        f"file = open({str(small / 'data')!r}, 'wb+')\nfile.truncate(8 << 20)\npages = mmap.mmap(file.fileno(), 8 << 20)\n"
        "for page in range(2048):\n    pages[page * 4096] = 1"
    )
    rank = Dying(job, tmp_path, act, program=program)
    rank.end()
    assert rank.death().startswith(f"SIGBUS, while {small} was full; in data, step 812")
    assert causes(gateway) == {"disk_full": 1}


# The agent shows a death once it is on disk.
def test_a_death_is_in_the_last_push_of_an_agent_with_a_slow_disk(job, gateway, tmp_path):
    rank = Dying(job, tmp_path, SIGNAL.format("SIGKILL"), flags=[f"--state-dir={tmp_path}/state"], env=slow("fdatasync", seconds=0.35))
    rank.end()
    assert causes(gateway) == {"killed": 1}


# A launcher reaps its ranks: the agent's supervisor does not learn how they ended.
@pytest.mark.needs("pidfd-exits")
def test_the_signal_of_a_rank_under_a_launcher_is_known(job, gateway, tmp_path):
    rank = Dying(job, tmp_path, SIGNAL.format("SIGKILL"), shell="{command}; exit 1")
    rank.end()
    assert rank.death().startswith("SIGKILL (the kernel has counted no kill")
    assert gateway.metrics().one("persia_process_exits_total", reason="SIGKILL") == 1
    assert causes(gateway) == {"killed": 1}


def test_the_last_lines_of_a_file_that_is_stderr_are_told(job, gateway, tmp_path):
    log = tmp_path / "train.log"
    act = "for line in range(50):\n    print('line', line, file=sys.stderr, flush=True)\nos._exit(4)"
    rank = Dying(job, tmp_path, act, shell=f"{{command}} 2> {log}; sleep 60", flags=["--stderr-tail=3"])
    rank.die()
    wait_until(lambda: json.loads(fetch(rank.agent.url + "/api/v1/status")[1])["deaths"], "the death")
    (death,) = json.loads(fetch(rank.agent.url + "/api/v1/status")[1])["deaths"]
    assert death["stderr"] == ["line 47", "line 48", "line 49"]
    assert log.read_text().endswith("line 49\n"), "it is as without the agent"
    rank.agent.popen.send_signal(signal.SIGTERM)
    rank.agent.wait()


def test_a_process_that_began_before_the_command_is_missed(job):
    beside = job.worker()
    beside.tell("count my_app batches 1")
    agent = job.exec("sleep", "600")
    wait_until(lambda: agent.metrics().one("my_app_batches") == 1, "the process")
    beside.kill()
    wait_until(lambda: agent.metrics().one("persia_process_died") == 1, "its death")
    agent.popen.send_signal(signal.SIGTERM)
    agent.wait()


def test_a_rank_that_leaves_is_no_death(job, gateway, tmp_path):
    rank = Dying(job, tmp_path, "sys.exit(0)")
    rank.end()
    assert " died: " not in rank.agent.output()
    assert causes(gateway) == {}
