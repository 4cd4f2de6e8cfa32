"""The agent's metrics of the workers' processes and of its command, without their cooperation."""

import os
import json
import shlex
import signal
import subprocess
import time

import pytest
from conftest import AGENT, BUILD, WORKER, Worker, environment
from needs import in_namespaces
from servers import fetch, free_port, wait_until

WALL_CLOCK = BUILD / "tests/e2e/worker/libwall_clock.so"

TRAINER = {"role": "trainer", "process": "0"}


def pushes(gateway):
    return gateway.metrics().one("persia_agent_pushes_total", result="success")


def wait_for_ticks(gateway, ticks):
    seen = pushes(gateway)
    wait_until(lambda: pushes(gateway) >= seen + ticks, f"{ticks} ticks")


def test_a_stopped_rank_shows_within_two_ticks_and_keeps_its_values(job, gateway):
    job.agent()
    worker = job.worker()
    worker.tell("busy my_app steps")
    moving = ("my_app_steps", "persia_process_last_change_timestamp_seconds", "persia_process_cpu_seconds_total")

    def values():
        shown = gateway.metrics()
        return [shown.one(name, role="trainer") for name in moving]

    wait_until(lambda: None not in values(), "the worker on the gateway")
    first = values()
    wait_until(lambda: all(now > before for now, before in zip(values(), first)), "the worker to get on")

    worker.signal(signal.SIGSTOP)
    wait_for_ticks(gateway, 2)
    still = values()
    wait_for_ticks(gateway, 3)
    assert values() == still
    shown = gateway.metrics()
    assert shown.one("persia_process_up", **TRAINER) == 1
    assert shown.one("persia_process_resident_memory_bytes", **TRAINER) > 0
    wait_until(lambda: time.time() - shown.one("persia_process_last_change_timestamp_seconds", **TRAINER) > 0.5, "the age")

    worker.signal(signal.SIGCONT)
    wait_until(lambda: all(now > before for now, before in zip(values(), still)), "the worker to continue")
    worker.kill()


def test_a_process_is_shown_as_the_kernel_has_it(job, gateway):
    agent = job.agent()
    worker = job.worker()
    worker.tell("count my_app batches 1")
    wait_until(lambda: agent.metrics().one("my_app_batches", role="trainer") == 1, "the worker, well after its start")
    shown = agent.metrics()
    of = {name: shown.one(f"persia_process_{name}", **TRAINER) for name in ("threads", "open_fds", "start_time_seconds")}
    assert of["threads"] == len(os.listdir(f"/proc/{worker.pid}/task"))
    assert of["open_fds"] == len(os.listdir(f"/proc/{worker.pid}/fd"))
    assert abs(of["start_time_seconds"] - time.time()) < 60
    assert shown.one("persia_process_restarts_total", **TRAINER) == 0
    info = next(dict(labels) for name, labels in shown if name == "persia_job_info" and ("role", "trainer") in labels)
    version = dict(next(labels for name, labels in shown if name == "persia_agent_build_info"))["version"]
    assert info["library_version"] == info["agent_version"] == version
    assert info["restart_count"] == "0" and info["run_id"]
    assert "persia_exec_" not in shown.text, "it runs no command"


@pytest.mark.needs("namespaces")
def test_a_process_of_another_pid_namespace_has_no_values_of_a_process_of_ours(job, segments, started, tmp_path):
    agent = job.agent()
    env = environment(PERSIA_METRICS_DIR=str(segments), PERSIA_JOB_NAME=job.name, PERSIA_ROLE="trainer")
    # Its pid is 1 there; here that is another process.
    worker = Worker(in_namespaces(WORKER), tmp_path / "inside.log", env=env, stdin=subprocess.PIPE)
    started(worker)
    worker.tell("count my_app batches 1")
    wait_until(lambda: agent.metrics().one("my_app_batches", role="trainer") == 1, "the worker to be seen")
    shown = agent.metrics()
    assert shown.one("persia_process_up", **TRAINER) == 1
    assert [path.name.split("-")[0] for path in segments.glob("*.seg")] == ["1"]
    assert shown.one("my_app_batches", role="trainer") == 1
    assert shown.one("persia_process_segment_used_ratio", **TRAINER) > 0
    for name in ("cpu_seconds", "resident_memory_bytes", "threads", "open_fds", "start_time_seconds"):
        assert shown.one(f"persia_process_{name}", **TRAINER) is None
    worker.leave()


def test_restarts_are_counted_by_place(job, gateway):
    job.agent()
    first = job.worker()
    gateway.wait_for("persia_process_up", 1, **TRAINER)
    other = job.worker()
    gateway.wait_for("persia_process_up", 1, role="trainer", process="1")
    first.kill()
    gateway.wait_for("persia_process_up", 0, **TRAINER)
    assert gateway.metrics().one("persia_process_restarts_total", **TRAINER) == 0, "nobody came after it yet"
    assert gateway.metrics().one("persia_process_cpu_seconds", **TRAINER) is None
    job.worker().tell("count my_app batches 1")
    gateway.wait_for("persia_process_restarts_total", 1, **TRAINER)
    gateway.wait_for("persia_process_up", 1, **TRAINER)
    assert gateway.metrics().one("persia_process_restarts_total", role="trainer", process="1") == 0
    assert other.running()


def test_how_the_command_ended_is_told_of_its_place(job, gateway):
    agent = job.exec_worker()
    agent.tell("count my_app batches 1")
    gateway.wait_for("persia_process_up", 1, **TRAINER)
    agent.popen.stdin.write("exit 3\n")
    agent.popen.stdin.flush()
    assert agent.wait() == 3
    shown = gateway.metrics()
    assert shown.one("persia_process_last_exit_info", reason="exit_3", **TRAINER) == 1
    assert shown.one("persia_process_up", **TRAINER) == 0
    assert shown.one("persia_exec_exit_code", role="agent") == 3


def test_how_an_orphan_ended_is_told_too(job, gateway, tmp_path):
    # Its parent ends immediately: the agent becomes its parent, and reaps it.
    for name in ("told", "hold"):
        os.mkfifo(tmp_path / name)
    script = f"({WORKER} < {tmp_path}/told & echo $! > {tmp_path}/pid); exec cat {tmp_path}/hold"
    agent = job.exec("sh", "-c", script, env={"PERSIA_ROLE": "trainer"})
    with open(tmp_path / "told", "w") as told, open(tmp_path / "hold", "w"):
        told.write("count my_app batches 1\n")
        told.flush()
        gateway.wait_for("persia_process_up", 1, **TRAINER)
        wait_until(lambda: (tmp_path / "pid").read_text().endswith("\n"), "its pid")
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        gateway.wait_for("persia_process_last_exit_info", 1, reason="SIGKILL", **TRAINER)
    assert agent.wait() == 0


@pytest.mark.parametrize("end, code", [("exit 255", 255), ("kill -KILL $$", 128 + signal.SIGKILL)])
def test_the_commands_exit_code_is_in_the_last_push(job, gateway, end, code):
    assert job.exec("sh", "-c", end).wait() == code
    shown = gateway.metrics()
    assert shown.one("persia_exec_exit_code", role="agent") == code
    assert shown.one("persia_exec_running", role="agent") == 0


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
        # A push has the time of the previous success, which may be before the clock was set.
        wait_until(
            lambda: abs((gateway.metrics().one("persia_agent_last_push_success_timestamp_seconds") or 0) - time.time() - seconds) < 60,
            "the wall clock to be shown",
        )
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
    wait_until(lambda: json.loads(fetch(agent.url + "/api/v1/status")[1])["gateway"]["last_success_ms"], "a push that arrived")
    gateway.kill()
    wait_until(lambda: "did not arrive" in agent.output(), "the agent's line on the lost gateway")
    for seconds in (-3600, 3600):
        shift.write_text(str(seconds))
        assert 0 <= json.loads(fetch(agent.url + "/api/v1/status")[1])["gateway"]["last_success_age_seconds"] < 60
    agent.leave()


@pytest.mark.needs("namespaces")
def test_a_host_without_dns_and_default_route_has_the_address_of_its_interface(segments, tmp_path):
    address = f"127.0.0.1:{free_port()}"
    command = [AGENT, "exec", "--job=apart", "--gateway=metrics_gateway:9091", f"--metrics-dir={segments}", f"--listen={address}", "--"]
    command += ["curl", "--silent", "--retry", "20", "--retry-delay", "1", "--retry-connrefused", f"http://{address}/metrics"]
    # The interfaces before it, loopback and one that is down, have addresses too.
    network = "ip link set lo up && ip link add eth0 type veth peer name down && ip address add 10.89.7.5/24 dev down"
    network += " && ip address add 10.89.8.5/24 dev eth0 && ip link set eth0 up"
    script = f"{network} && mount --bind /dev/null \"$(realpath /etc/resolv.conf)\" && {shlex.join(map(str, command))}"
    done = subprocess.run(in_namespaces("sh", "-c", script), env=environment(), capture_output=True, text=True, timeout=60)
    assert 'persia_agent_build_info{job="apart",instance="rep_0",ip_addr="10.89.8.5",' in done.stdout, done.stderr
