"""`persia-metrics-agent exec`: nothing of the agent prevents, changes or ends the command; its last values are pushed."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest
from conftest import AGENT, PYTHON, PYTHON_PACKAGE, WORKER, Agent, environment
from servers import fetch, free_port, wait_until


def test_unknown_command_gives_127_and_says_so(job):
    agent = job.exec("/no/such/command")
    assert agent.wait() == 127
    assert "/no/such/command" in agent.output()


def test_file_that_cannot_be_executed_gives_126(job, tmp_path):
    file = tmp_path / "text"
    file.write_text("no program")
    assert job.exec(file).wait() == 126


def test_ctrl_c_in_a_terminal_ends_the_whole_group_in_order(job, gateway):
    agent = job.exec_worker()
    agent.tell("count my_app batches 4")
    os.killpg(agent.pid, signal.SIGINT)
    assert agent.wait() == 128 + signal.SIGINT
    assert gateway.metrics().one("my_app_batches") == 4
    assert not agent.group_members()


@pytest.mark.parametrize("by", ["variable", "file"])
def test_disabled_metrics_run_the_job_and_export_nothing(job, gateway, tmp_path, by):
    config = tmp_path / "global_config.yaml"
    config.write_text("PersiaMetricsConfig:\n  enable_metrics: false\n  job_name: other\n")
    agent = job.exec_worker(f"--config={config}") if by == "file" else job.exec_worker(env={"PERSIA_METRICS_ENABLED": "false"})
    agent.tell("count my_app batches 5")
    assert agent.leave() == 0
    assert gateway.metrics().one("my_app_batches") is None
    assert ("enable_metrics" if by == "file" else "private") in agent.output()


def test_processes_that_outlive_the_command_are_named(job, gateway, tmp_path):
    """Such as those that a script starts in the background: they ignore Ctrl-C."""
    for name in ("lines", "go"):
        os.mkfifo(tmp_path / name)
    agent = job.exec("sh", "-c", f"{WORKER} < {tmp_path}/lines & echo $! > {tmp_path}/pid; read line < {tmp_path}/go")
    with open(tmp_path / "lines", "r+b", buffering=0) as lines:
        lines.write(b"count my_app batches 1\n")
        gateway.wait_for("my_app_batches", 1)
        (tmp_path / "go").write_text("on\n")
        assert agent.wait() == 0
        pid = (tmp_path / "pid").read_text().strip()
        assert f"1 process of the job still runs, and no agent collects from it: pid {pid}" in agent.output()


def test_busy_port_does_not_keep_the_command_from_running(job, gateway):
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        agent = job.exec_worker(f"--listen=127.0.0.1:{busy.getsockname()[1]}")
        agent.tell("count my_app batches 6")
        assert agent.leave() == 0
    assert gateway.metrics().one("my_app_batches") == 6


def test_second_agent_of_a_job_steps_aside_and_runs_its_command(job, gateway):
    first = job.exec_worker()
    first.tell("count my_app batches 1")
    second = job.exec_worker(env={"REPLICA_INDEX": "1"})
    second.tell("count my_app batches 2")
    assert second.leave() == 0
    assert first.running()
    gateway.wait_for("my_app_batches", 2, instance="rep_1")
    assert first.leave() == 0
    assert gateway.metrics().one("my_app_batches", instance="rep_0") == 1


@pytest.mark.parametrize("named_by", ["a flag", "a variable", "a file", "nothing"])
def test_a_job_inside_of_another_has_its_own_name_and_directory(job, gateway, tmp_path, named_by):
    name = f"inner-{os.getpid()}-{'-'.join(named_by.split())}"
    (tmp_path / "inner.yaml").write_text(f"PersiaMetricsConfig:\n  job_name: {name}\n")
    variable, flag = {
        "a flag": ("", f"--job={name}"),
        "a variable": (f"PERSIA_JOB_NAME={name} ", ""),
        "a file": ("", f"--config={tmp_path}/inner.yaml"),
        "nothing": ("", ""),
    }[named_by]
    flags = f"{flag} --gateway={gateway.address} --listen=off --push-interval=0.2"
    inside = f"echo count my_app batches 5 | {variable}{AGENT} exec {flags} -- {WORKER}"
    try:
        outer = job.exec("sh", "-c", f"{inside}; echo count my_app batches 3 | {WORKER}", env={"PERSIA_ROLE": "trainer"})
        assert outer.wait() == 0
    finally:
        shutil.rmtree(f"/dev/shm/persia-metrics-{os.geteuid()}/{name}", ignore_errors=True)
    of_inner = gateway.metrics().one("my_app_batches", job=name)
    of_outer = gateway.metrics().one("my_app_batches", job=job.name)
    assert (of_outer, of_inner) == ((8, None) if named_by == "nothing" else (3, 5)), outer.output()


BROKEN = "PersiaMetricsConfig:\n  job_nam: dlrm\n"


def test_broken_config_does_not_keep_the_command_from_running(job, tmp_path):
    config = tmp_path / "broken.yaml"
    config.write_text(BROKEN)
    agent = job.exec("sh", "-c", "echo it ran; exit 5", flags=[f"--config={config}"])
    assert agent.wait() == 5
    assert "it ran" in agent.output()
    assert f"{config}:2" in agent.output() and "job_nam" in agent.output() and "job_name" in agent.output()


def test_broken_config_is_refused_before_the_command_with_strict(job, tmp_path):
    config = tmp_path / "broken.yaml"
    config.write_text(BROKEN)
    agent = job.exec("sh", "-c", "echo it ran", flags=["--strict", f"--config={config}"])
    assert agent.wait() not in (0, 128 + signal.SIGKILL)
    assert "it ran" not in agent.output()
    assert "job_nam" in agent.output()


COUNTED = "until test -e {0}; do sleep 0.01; done"


def test_what_people_write_costs_no_metrics_and_the_command_needs_no_separator(job, started, tmp_path):
    flags = ["--log-level", "warn", "--max-segment-bytes", "64MiB", "--gauge-ttl", "1m30s", "--web.enable-lifecycle"]
    address = f"127.0.0.1:{free_port()}"
    command = ["sh", "-c", f"echo it ran; {COUNTED.format(tmp_path / 'end')}; exit 5"]
    agent = Agent(["exec", *job.flags(address, ["--push-interval=0.2"]), *flags, *command], tmp_path / "exec.log", environment(), address)
    started(agent)
    wait_until(lambda: agent.metrics().one("persia_exec_running") == 1, "the agent's pages")
    assert agent.metrics().one("persia_agent_config_errors") == 0
    (tmp_path / "end").touch()
    assert agent.wait() == 5
    assert "it ran" in agent.output() and " error: " not in agent.output()


@pytest.mark.parametrize(
    "flags, said",
    [
        (["--log-level=wran"], '--log-level: "wran" is not one of: debug, info, warning, warn, error, off; did you mean "warn"? the default is used: info'),
        (["--no-such-flag=dlrm"], 'unknown flag "--no-such-flag"; it is ignored'),
        (["--state-dir="], "--state-dir: the value is missing; the default is used: beside the segments"),
    ],
    ids=["level", "unknown", "missing"],
)
def test_a_wrong_setting_costs_itself_and_is_counted(job, gateway, flags, said):
    agent = job.exec_worker(*flags)
    agent.tell("count my_app batches 3")
    wait_until(lambda: agent.metrics().one("my_app_batches") == 3, "the counter on the agent's /metrics")
    assert agent.metrics().one("persia_agent_config_errors") == 1
    assert said in agent.output()
    assert agent.leave() == 0
    assert gateway.metrics().one("my_app_batches") == 3


@pytest.mark.parametrize("verb, said", [("exec", "the command is not started"), ("run", "the agent ends")])
def test_a_misspelt_flag_is_refused(segments, verb, said):
    command = [AGENT, verb, "--jobb=dlrm", f"--metrics-dir={segments}", *(["--", "echo", "it ran"] if verb == "exec" else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment(), stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f'persia-metrics-agent: unknown flag "--jobb"; did you mean "--job"? {said}\n'


def test_settings_that_may_lead_to_the_wrong_gateway_stop_pushes_alone(job, gateway, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("PersiaMetricsConfig:\n  gateway_pasword: hunter2\n  push_interval_seconds: often\n")
    agent = job.exec_worker(f"--config={config}", "--gateway=127.0.0.1:0")
    agent.tell("count my_app batches 3")
    wait_until(lambda: agent.metrics().one("my_app_batches") == 3, "the counter on the agent's /metrics")
    assert agent.metrics().one("persia_agent_config_errors") == 3
    assert agent.leave() == 0
    output = agent.output()
    assert output.count("nothing is pushed to a gateway") == 2 and "hunter2" not in output
    assert f"{config}:3:26: push_interval_seconds:" in output
    assert "cannot push" not in output and "gateway off" in output


def test_the_log_tells_a_new_run_from_one_that_goes_on(job):
    source = "import persia_metrics; persia_metrics.Counter('my_app', 'steps').inc(); raise SystemExit(3)"
    logs = []
    for _ in range(2):
        agent = job.exec(PYTHON, "-c", source, env={"PYTHONPATH": str(PYTHON_PACKAGE)})
        assert agent.wait() == 3
        logs.append(agent.output())
    run = re.search(r" starts run (\S+),", logs[0])
    assert run and "continues run" not in logs[0]
    assert f" continues run {run[1]}," in logs[1]


def test_unreachable_gateway_does_not_change_the_exit_code(job, gateway):
    gateway.kill()
    agent = job.exec_worker("--push-timeout=0.5")
    agent.tell("count my_app batches 1")
    assert agent.leave() == 0


# As torchrun: when a rank dies, the launcher ends the others and fails.
FAILING = """
for rank in 0 1 2; do
  { echo 'count my_app steps_total 5'; echo 'set my_app loss 0.5'; exec sleep 60; } | REPLICA_INDEX=$rank PERSIA_ROLE=trainer "$0" & pids="$pids $!"
done
set -- $pids
until [ -e go ]; do sleep 0.1; done
kill -KILL "$3"
until [ -e seen ]; do sleep 0.1; done
kill -TERM "$1" "$2"; sleep 1
pkill -TERM -P $$ sleep
exit 1
"""


def test_a_failed_command_names_the_first_death_and_nothing_of_it_expires(job, tmp_path):
    go, seen = tmp_path / "go", tmp_path / "seen"
    report = tmp_path / "report.html"
    flags = ["--linger=60", "--gauge-ttl=4", f"--report={report}"]
    agent = job.exec("sh", "-c", FAILING.replace("-e go", f"-e {go}").replace("-e seen", f"-e {seen}"), str(WORKER), flags=flags)

    def status():
        return json.loads(fetch(agent.url + "/api/v1/status")[1])

    wait_until(lambda: [worker["up"] for worker in status()["workers"]] == 3 * [True], "the ranks")
    go.touch()
    wait_until(lambda: [worker["up"] for worker in status()["workers"]].count(False) == 1, "the first death")
    seen.touch()
    wait_until(lambda: status()["health"]["state"] == "failed", "the end")
    ended = time.monotonic()
    wait_until(lambda: time.monotonic() > ended + 5, "longer than --gauge-ttl", 10)
    last = status()
    texts = [reason["text"] for reason in last["health"]["reasons"]]
    # Before Linux 6.15, only its launcher knows that it was SIGKILL.
    assert re.fullmatch(r"trainer rep_2 died: (SIGKILL|it ended by a signal or _exit)\b.*", texts.pop(0))
    assert texts == ["and 2 more ended after it"] and last["health"]["title"] == "Failed, exit 1"
    first = last["health"]["reasons"][0]
    assert first["instance"] == "rep_2" and first["since_ms"] < last["health"]["since_ms"]
    assert [worker["state"] for worker in last["workers"]] == 3 * ["died"]
    assert agent.metrics().one("my_app_loss", instance="rep_0") == 0.5
    assert agent.metrics().one("persia_process_died", instance="rep_2") == 0, "nothing is missed any more"
    agent.signal(signal.SIGTERM)
    assert agent.wait() == 1
    assert "my_app_loss" in report.read_text() and "rep_2 died: " in report.read_text()
