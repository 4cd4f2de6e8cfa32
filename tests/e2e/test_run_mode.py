"""An agent in run mode, and the one-shot commands."""

import contextlib
import json
import os
import re
import resource
import signal
import socket
import subprocess

from conftest import AGENT, Agent, Samples, environment
from servers import fetch, free_port, wait_until


def call(*arguments, **env):
    return subprocess.run([AGENT, *arguments], env=environment(**env), capture_output=True, text=True, timeout=30)


def test_workers_that_came_before_the_agent_and_after_it(job, gateway):
    job.worker().tell("count my_app batches 11")
    job.agent()
    gateway.wait_for("my_app_batches", 11, job=job.name, role="trainer", instance="rep_0")
    job.worker("embedding_server", replica=2).tell("count_feat persia nan_count user_id 11")
    gateway.wait_for("nan_count", 11, role="embedding_server", instance="rep_2", feat="user_id")


def test_agent_stops_on_sigterm_with_a_last_push(job, gateway):
    agent = job.agent("--push-interval=3600")
    worker = job.worker()
    worker.tell("count my_app batches 1")
    wait_until(lambda: agent.metrics().one("my_app_batches") == 1, "the agent to have read the worker")
    agent.signal(signal.SIGTERM)
    assert agent.wait() == 0
    assert gateway.metrics().one("my_app_batches") == 1


def test_exit_when_idle_ends_after_the_last_worker(job, gateway):
    agent = job.agent("--exit-when-idle=0.3s")
    workers = [job.worker(replica=replica) for replica in (0, 1)]
    for worker in workers:
        worker.tell("count my_app batches 4")
    wait_until(lambda: agent.metrics().one("my_app_batches", instance="rep_1") == 4, "the agent to have read both")
    workers[0].leave()
    assert agent.running()
    workers[1].leave()
    assert agent.wait() == 0
    pushed = gateway.metrics()
    assert [pushed.one("my_app_batches", instance=f"rep_{replica}") for replica in (0, 1)] == [4, 4]


def test_a_wrong_setting_ends_the_agent_only_with_strict(job, gateway):
    wrong = ("--push-timeout=soon", "--no-such-flag=1")
    strict = job.agent(*wrong, "--strict")
    assert strict.wait() == 2
    assert "(and 1 more: check-config lists them); the agent ends (--strict)" in strict.output()
    agent = job.agent(*wrong, "--exit-when-idle=later")
    worker = job.worker()
    worker.tell("count my_app batches 2")
    gateway.wait_for("my_app_batches", 2)
    wait_until(lambda: agent.metrics().one("persia_agent_config_errors") == 3, "the errors on /metrics")
    for said in ("the default is used: 10", 'unknown flag "--no-such-flag"; it is ignored', "the agent runs until a signal"):
        assert said in agent.output()


def test_a_busy_port_does_not_end_the_agent(job, gateway):
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        flag = f"--listen=127.0.0.1:{busy.getsockname()[1]}"
        strict = job.agent(flag, "--strict")
        assert strict.wait() == 1
        agent = job.agent(flag)
        worker = job.worker()
        worker.tell("count my_app batches 2")
        gateway.wait_for("my_app_batches", 2)
        assert agent.running() and f"in use by pid {os.getpid()} (python3" in agent.output()
        assert "); give another port, or 0 for any free one; the pages are not served" in agent.output()


@contextlib.contextmanager
def soft_descriptor_limit(soft):
    """Processes that are started meanwhile have this soft limit."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))
    yield before[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_agent_raises_its_limit_of_descriptors_and_not_the_commands(job):
    with soft_descriptor_limit(200) as hard:
        agent = job.agent()
        command = job.exec("sh", "-c", "ulimit -Sn; ulimit -Hn")
    wait_until(lambda: agent.metrics(), "the agent")
    assert resource.prlimit(agent.pid, resource.RLIMIT_NOFILE) == (hard, hard)
    assert command.wait() == 0
    assert f"200\n{hard}\n" in command.output()


# The families of /metrics that `once` does not show, and why.
ONLY_THE_AGENT_HAS = {
    "process_": "of the agent's process, which once is not",
    "persia_agent_collect": "work of the agent",
    "persia_agent_render": "work of the agent",
    "persia_agent_scrapes": "work of the agent",
    "persia_agent_ticks": "work of the agent",
    "persia_agent_push": "work of the agent",
    "persia_agent_consecutive": "work of the agent",
    "persia_agent_last_push": "work of the agent",
    "persia_agent_groups": "groups that the agent pushes",
    "persia_agent_identity_conflicts": "groups that the agent pushes",
    "persia_agent_config_": "the settings of the agent",
    "persia_agent_state_": "files that the agent writes",
    "persia_agent_fifo_lines": "the agent reads the pipe",
    "persia_agent_event_records_lost": "the agent reads the events",
    "persia_agent_log_lines": "the log of the agent",
    "persia_agent_remote_write_": "work of the agent, but for the queue's limit",
    "persia_job_h": "judged by many collections",
    "persia_job_throughput": "seen by two collections",
    "persia_job_unchanged": "seen by two collections",
    "persia_process_hung": "judged by many collections",
    "persia_process_last_change": "seen by two collections",
    **{f"persia_{of}_": "read by a thread of the agent" for of in ("cgroup", "pressure", "filesystem", "network", "infiniband")},
    **{f"persia_process_{of}": "read by a thread of the agent" for of in ("max_fds", "context_switches", "swapped_memory", "proportional_memory")},
    "persia_agent_cpu_seconds": "of the agent's process",
    "persia_agent_resident_memory": "of the agent's process",
}


def once(job, *flags):
    result = call("once", f"--job={job.name}", f"--metrics-dir={job.segments}", *flags)
    assert result.returncode == 0, result.stderr
    return result.stdout


def series_of(text):
    """The families of an exposition, and its series of workers, without values."""
    families = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")}
    others = ("#", "persia_agent_", *ONLY_THE_AGENT_HAS)
    return families, {line.rsplit(" ", 1)[0] for line in text.splitlines() if not line.startswith(others)}


def test_once_shows_what_metrics_shows(job, gateway, tmp_path):
    rules = tmp_path / "mapping.yaml"
    rules.write_text("mappings:\n  - {match: misses, name: cache_misses}\n")
    flags = [f"--gateway={gateway.address}", "--label=team=ads", f"--mapping-file={rules}", "--remote-write=http://127.0.0.1:1/w"]
    agent = job.agent(f"--fifo={tmp_path / 'pipe'}", *flags)
    ended, worker = job.worker(), job.worker(replica=1)
    for each in (ended, worker):
        each.tell("count my_app batches 12")
        each.tell("observe my_app latency 0.3")
        each.tell("count_feat my_app misses a 2")
    assert ended.leave() == 0
    wait_until(lambda: agent.metrics().one("persia_agent_retired_processes_total") == 1, "the worker's end")
    with open(tmp_path / "pipe", "w") as pipe:
        pipe.write('{"loss": 0.5}\n')
    wait_until(lambda: agent.metrics().one("persia_agent_fifo_lines_total", result="good") == 1, "the line in the pipe")
    families, series = series_of(fetch(agent.url + "/metrics")[1])
    families_once, series_once = series_of(once(job, *flags))
    # The library of a process that has ended is known only to an agent that saw the process alive.
    series, series_once = ({re.sub(',library_version="[^"]*"', "", each) for each in of} for of in (series, series_once))
    assert families_once <= families
    unknown = {name for name in families - families_once if not name.startswith(tuple(ONLY_THE_AGENT_HAS))}
    assert unknown == set()
    assert sorted(series_once ^ series) == []
    assert {"persia_process_up", "persia_job_info", "cache_misses", "persia_agent_build_info", "persia_agent_segments"} <= families_once
    both = {"persia_agent_series", "persia_agent_max_series", "persia_agent_push_interval_seconds", "persia_agent_remote_write_queue_max_bytes"}
    assert both | {"persia_agent_metrics_dir_free_bytes", "persia_agent_metrics_dir_size_bytes"} <= families_once & families
    shown, shown_once = agent.metrics(), Samples(once(job, "--push-interval=0.2", *flags))
    for family in ("persia_agent_max_series", "persia_agent_push_interval_seconds", "persia_agent_remote_write_queue_max_bytes"):
        assert shown_once.one(family) == shown.one(family)
    assert shown_once.one("my_app_batches", instance="rep_1") == 12
    # The agent has some families of its own more.
    assert shown_once.one("persia_agent_series") > len(series_once)


def test_once_applies_the_limits_of_the_agent(job):
    worker = job.worker()
    for number in range(20):
        worker.tell(f"count_feat my_app misses feat{number} 2")
    text = once(job, "--max-series=5")
    assert text.count("my_app_misses{") < 20 and Samples(text).one("persia_agent_dropped_series", reason="max_series") > 0


def test_once_writes_nothing(job):
    """Not even a lock, so that an agent may start meanwhile."""
    worker = job.worker()
    worker.tell("count my_app batches 12")
    assert worker.leave() == 0

    def files():
        return sorted((path.name, path.stat().st_mtime_ns) for path in job.segments.rglob("*"))

    before = files()
    assert Samples(once(job)).one("my_app_batches") == 12
    assert files() == before


def test_check_config_names_the_place_and_the_nearest_key(tmp_path):
    config = tmp_path / "global_config.yaml"
    config.write_text("PersiaMetricsConfig:\n  enable_metrics: true\n  job_nmae: dlrm\n")
    result = call("check-config", f"--config={config}")
    assert result.returncode != 0
    message = result.stdout + result.stderr
    assert f"{config}:3:3" in message and "job_nmae" in message and "job_name" in message


def test_version_and_help():
    version = call("--version")
    assert version.returncode == 0 and "0.1.0" in version.stdout
    help_text = call("--help")
    assert help_text.returncode == 0
    for command in ("run", "exec", "once", "check-config"):
        assert command in help_text.stdout


def test_without_a_gateway_nothing_is_pushed_and_nothing_complains(job, gateway, tmp_path):
    settings = tmp_path / "config.yaml"
    settings.write_text("PersiaMetricsConfig:\n  gateway_address: off\n")
    address = f"127.0.0.1:{free_port()}"
    flags = [f"--config={settings}", f"--job={job.name}", f"--metrics-dir={job.segments}", f"--listen={address}", "--push-interval=0.2"]
    agent = Agent(["run", *flags], tmp_path / "agent.log", environment(), address)
    with agent:
        worker = job.worker()
        worker.tell("count my_app batches 3")
        wait_until(lambda: agent.metrics().one("my_app_batches") == 3, "the counter on /metrics")
        wait_until(lambda: agent.metrics().one("persia_agent_collect_duration_seconds_count") > 5, "some ticks")
        status = json.loads(fetch(agent.url + "/api/v1/status")[1])["gateway"]
        assert (status["address"], status["pushes"], status["last_success_ms"]) == ("off", 0, None)
        assert "persia_agent_pushes_total" not in agent.metrics().text
        assert not [line for line in agent.output().splitlines() if "warning" in line and ("cannot push" in line or "gateway" in line)]
        settings.write_text(f"PersiaMetricsConfig:\n  gateway_address: {gateway.address}\n")
        agent.signal(signal.SIGHUP)
        gateway.wait_for("my_app_batches", 3)
        settings.write_text("PersiaMetricsConfig:\n  gateway_address: off\n")
        agent.signal(signal.SIGHUP)
        wait_until(lambda: json.loads(fetch(agent.url + "/api/v1/status")[1])["gateway"]["address"] == "off", "the gateway to be off")
        worker.tell("count my_app batches 1")
        agent.signal(signal.SIGTERM)
        assert agent.wait() == 0
    assert gateway.metrics().one("my_app_batches") == 3
