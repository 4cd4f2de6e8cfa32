"""Memory, processor, disk and network of the job: what the agent reads of the machine."""

import contextlib
import json
import os
import re
import resource
import signal
import subprocess
from pathlib import Path

import needs
import pytest
from conftest import WORKER, Worker, environment
from machine import HangingFilesystem
from memory_cgroup import memory_cgroup
from servers import fetch, find_program, wait_until
from supervised import threads_of_process

TRAINER = {"role": "trainer", "instance": "rep_0"}
OF_THE_MACHINE = re.compile("^persia_(cgroup|pressure|filesystem|network|infiniband)_")
# Beside persia_process_* that are read at each collection.
BY_THE_THREAD = [
    ("persia_process_max_fds", {}),
    ("persia_process_proportional_memory_bytes", {}),
    ("persia_process_swapped_memory_bytes", {}),
    ("persia_process_context_switches_total", {"ctxswitchtype": "voluntary"}),
    ("persia_process_context_switches_total", {"ctxswitchtype": "nonvoluntary"}),
]


def await_value(agent, name, value, **labels):
    def seen():
        have = agent.metrics().one(name, **labels)
        if have != value:
            raise ValueError(f"{name}{labels} is {have!r}, not {value!r}")
        return True

    wait_until(seen, name)


def pid_of_worker(agent):
    (pid,) = (worker["pid"] for worker in json.loads(fetch(agent.url + "/api/v1/status")[1])["workers"] if worker["up"])
    return pid


@pytest.mark.needs("memory-cgroup")
def test_a_process_that_the_kernel_kills_for_memory_is_counted(job):
    limit = 64 << 20
    agent = job.exec_worker()
    agent.tell("count my_app batches 1")
    wait_until(lambda: agent.metrics().one("persia_process_up", **TRAINER) == 1, "the worker")
    with memory_cgroup(limit) as group:
        group.add(pid_of_worker(agent))
        await_value(agent, "persia_cgroup_memory_limit_bytes", limit, role="agent")
        await_value(agent, "persia_cgroup_memory_events_total", 0, event="oom_kill")
        shown = agent.metrics()
        assert shown.one("persia_cgroup_memory_working_set_bytes") <= shown.one("persia_cgroup_memory_usage_bytes") <= limit
        assert group.run_out_of_memory(4 * limit) == -signal.SIGKILL
        await_value(agent, "persia_cgroup_memory_events_total", 1, event="oom_kill")
        shown = agent.metrics()
        assert shown.one("persia_cgroup_memory_events_total", event="max") > 0
        assert limit / 2 < shown.one("persia_cgroup_memory_max_usage_bytes") <= limit
        assert shown.one("persia_process_up", **TRAINER) == 1, "another one was killed"
        assert agent.leave() == 0


@pytest.fixture
def data(tmp_path):
    directory = tmp_path / "data"
    directory.mkdir()
    return directory


def worker_in(job, directory):
    return job.python(f"import os\nos.chdir({str(directory)!r})\nfrom persia_metrics import Counter\nCounter('my_app', 'steps').inc()\ninput()\n")


@contextlib.contextmanager
def hanging(agent, directory):
    """The agent knows that the filesystem of the worker's directory hangs."""
    # A worker that has not entered the directory yet would hang in that, and the agent would show its own directory for ever.
    wait_until(lambda: pid_of_worker(agent), "the worker")
    await_value(agent, "persia_filesystem_device_error", 0, use="working_directory")
    filesystem = HangingFilesystem(directory)
    try:
        await_value(agent, "persia_filesystem_device_error", 1, use="working_directory")
        yield
    finally:
        filesystem.end()


@pytest.mark.needs("fuse")
def test_a_filesystem_that_hangs_is_a_value_and_delays_nothing(job, data):
    agent = job.agent()
    worker = worker_in(job, data)
    with hanging(agent, data):
        shown = agent.metrics()
        assert shown.one("persia_filesystem_size_bytes", use="working_directory") is None
        assert shown.one("persia_filesystem_device_error", use="shm") == 0
        agent.await_collections(4)
        agent.signal(signal.SIGTERM)
        assert agent.wait() == 0, "it ends, too, while the filesystem hangs"
    worker.succeed()


@pytest.mark.needs("fuse")
def test_a_filesystem_that_answers_again_is_shown_again(job, data):
    agent = job.agent()
    worker = worker_in(job, data)
    with hanging(agent, data):
        pass
    await_value(agent, "persia_filesystem_device_error", 0, use="working_directory")
    assert agent.metrics().one("persia_filesystem_size_bytes", use="working_directory") > 0
    worker.succeed()


@pytest.mark.needs("namespaces")
def test_the_network_is_that_of_the_worker(job, segments, tmp_path, started):
    """A worker whose network namespace has nothing but a loopback, through which it has sent nothing."""
    agent = job.agent()
    name = "persia_network_tcp_transmit_segments_total"
    wait_until(lambda: (agent.metrics().one(name) or 0) > 0, "the agent's own network, which has the answers to this test")
    env = environment(PERSIA_METRICS_DIR=str(segments), PERSIA_JOB_NAME=job.name, PERSIA_ROLE="trainer")
    worker = Worker(["unshare", *needs.users(), "--net", WORKER], tmp_path / "worker.log", env=env, stdin=subprocess.PIPE)
    started(worker)
    worker.tell("count my_app batches 1")
    await_value(agent, name, 0)
    assert not [labels for shown, labels in agent.metrics() if shown == "persia_network_receive_bytes_total"]
    assert worker.leave() == 0


def test_each_worker_has_its_values_and_promtool_accepts_all(job):
    agent = job.exec_worker()
    agent.tell("count my_app batches 1")
    for name, labels in BY_THE_THREAD:
        wait_until(lambda name=name, labels=labels: agent.metrics().one(name, **TRAINER, **labels) is not None, name)
    shown = agent.metrics()
    pid = pid_of_worker(agent)
    assert shown.one("persia_process_max_fds", **TRAINER) == resource.prlimit(pid, resource.RLIMIT_NOFILE)[0]
    assert 0 < shown.one("persia_process_proportional_memory_bytes", **TRAINER) <= 2 * shown.one("persia_process_resident_memory_bytes", **TRAINER)
    assert shown.one("persia_process_minor_page_faults_total", **TRAINER) > 0
    assert shown.one("persia_process_run_queue_wait_seconds_total", **TRAINER) >= 0
    assert shown.one("persia_filesystem_size_bytes", use="shm") == os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize
    if Path("/proc/pressure/cpu").exists():
        assert shown.one("persia_pressure_cpu_waiting_seconds_total", scope="host") > 0
    assert "machine" in threads_of(agent)
    of_machine = [name for name, labels in shown if OF_THE_MACHINE.match(name)]
    assert 10 < len(of_machine) < 100
    ours = re.compile(r"(# \w+ )?persia_(cgroup|pressure|filesystem|network|infiniband|process)_")
    text = "".join(line + "\n" for line in shown.text.splitlines() if ours.match(line))
    checked = subprocess.run([find_program("promtool"), "check", "metrics"], input=text, capture_output=True, text=True, timeout=30, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert agent.leave() == 0


def test_it_can_be_switched_off(job):
    agent = job.exec_worker("--machine-metrics=false")
    agent.tell("count my_app batches 1")
    wait_until(lambda: agent.metrics().one("persia_process_up", **TRAINER) == 1, "the worker")
    shown = agent.metrics()
    assert not [name for name, labels in shown if OF_THE_MACHINE.match(name)]
    assert shown.one("persia_process_max_fds", **TRAINER) is None
    assert shown.one("persia_process_minor_page_faults_total", **TRAINER) > 0
    assert "machine" not in threads_of(agent) and "collector" in threads_of(agent)
    assert agent.leave() == 0


def threads_of(agent):
    """The names of the threads of all processes of an agent, which have its address in their command."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            if agent.address in (process / "cmdline").read_text():
                found |= threads_of_process(process.name)
    return found
