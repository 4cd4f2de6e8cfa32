"""The metrics and events of Debian's torch, by its launcher and ranks, without a line of ours in the training script."""

import json
import re
from collections import defaultdict

import pytest
from conftest import PYTHON, PYTHON_PACKAGE
from torch_environment import torch_environment
from wheel import run

TRAIN = """
import os, signal, sys
import torch
import torch.distributed
from torch.distributed.elastic.metrics import put_metric

torch.distributed.init_process_group("gloo")
rank, restart = torch.distributed.get_rank(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
for step in range(3):
    ranks = torch.ones(1)
    torch.distributed.all_reduce(ranks)
    put_metric("train_step.duration.ms", 4)
torch.distributed.barrier()
if sys.argv[1] == "killed" and restart == 0 or sys.argv[1] == "fails":
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()
"""

# torch's launcher, which writes torch's metrics and events into a file.
LAUNCHER = """
import json, os, sys
import torch.distributed.elastic.events.api as events
import torch.distributed.elastic.metrics.api as metrics
from torch.distributed.run import main

def note(kind, *what):
    with open(os.environ["LEDGER"], "a") as file:
        print(json.dumps([kind, *what]), file=file)

def noting(add_value):
    def noted(stream, name, value):
        note("metric", stream.group_name, name, value)
        add_value(stream, name, value)
    return noted

def noting_events(type, serialize):
    def noted(event):
        note("event", f"torchelastic.{event.source.lower() if type == 'event' else type}", event.name)
        return serialize(event)
    return noted

metrics.MetricStream.add_value = noting(metrics.MetricStream.add_value)
events.Event.serialize = noting_events("event", events.Event.serialize)
events.RdzvEvent.serialize = noting_events("rendezvous", events.RdzvEvent.serialize)
main()
"""


@pytest.fixture(scope="module")
def python(built_wheel, tmp_path_factory):
    """The interpreter of a virtual environment with the wheel and the system's torch."""
    environment_ = tmp_path_factory.mktemp("torch") / "venv"
    run(PYTHON, "-m", "venv", "--system-site-packages", "--without-pip", environment_)
    python_ = environment_ / "bin/python"
    run(built_wheel.python, "-m", "pip", "--python", python_, "install", "--no-index", "--no-deps", built_wheel.file)
    return python_


TWO_RANKS = ("--nproc_per_node", "2", "--monitor_interval", "0.2")


@pytest.fixture
def scripts(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "launcher.py").write_text(LAUNCHER)
    return tmp_path


def read_ledger(file):
    """The values of each metric by its name, and the counts of the events by their types and names."""
    values, events = defaultdict(list), defaultdict(int)
    for kind, *what in map(json.loads, file.read_text().splitlines()):
        if kind == "event":
            events[tuple(what)] += 1
        else:
            group, name, value = what
            assert group == "torchelastic"
            values[name].append(value)
    return values, events


RESULTS = {
    f"run_{result}_{retries}": {"result": result.replace("failed", "failure"), "restarted": restarted}
    for result in ("success", "failed")
    for retries, restarted in (("no_retries", "false"), ("with_retries", "true"))
}


def check_metric(shown, name, values, role):
    """One of torch's metrics is on the gateway, by the name that the bundled rules give it, with torch's values."""

    def has(exposed, value, **labels):
        assert shown.one(exposed, instance="rep_0", **labels) == pytest.approx(value), (name, exposed, labels)

    if timed := re.fullmatch(r"(\w+\.\w+)\.duration\.ms", name):
        function = timed[1]
        rendezvous = function.endswith("._rendezvous")
        exposed = "torchelastic_rendezvous_duration_seconds" if rendezvous else "torchelastic_function_duration_seconds"
        labels = {} if rendezvous else {"function": function}
        has(f"{exposed}_count", len(values), role="launcher", **labels)
        has(f"{exposed}_sum", sum(values) / 1000, role="launcher", **labels)
    elif called := re.fullmatch(r"(\w+\.\w+)\.(success|failure)", name):
        if called[1].endswith("._rendezvous"):
            has("torchelastic_rendezvous_total", sum(values), role="launcher", result=called[2])
        else:
            has("torchelastic_function_calls_total", sum(values), role="launcher", function=called[1], result=called[2])
    else:
        metric = re.fullmatch(r"workers\.\w+\.(\w+)", name)[1]
        if metric in RESULTS:
            has("torchelastic_worker_group_run_results_total", sum(values), role=role, **RESULTS[metric])
        elif metric == "run_total":
            has("torchelastic_worker_group_runs_total", sum(values), role=role)
        elif metric == "flakiness":
            has("torchelastic_worker_group_flakiness_ratio", values[-1] / 100, role=role)
        elif metric == "remaining_restarts":
            has("torchelastic_worker_group_remaining_restarts", values[-1], role=role)
        else:
            assert metric in {"healthy", "unhealthy", "succeeded", "failed"}
            has("torchelastic_worker_group_state_observations_total", sum(values), role=role, state=metric)


def events_of(shown):
    counts = {}
    for (name, labels), value in shown.items():
        if name == "persia_events_total":
            have = dict(labels)
            assert (have["role"], have["instance"]) == ("launcher", "rep_0")
            counts[have["type"], have["event"]] = value
    return counts


STATUS = "torchelastic.worker.status."
ALL_SUCCEEDED = {("agent", "SUCCEEDED"): 1, ("worker", "SUCCEEDED"): 2}


@pytest.mark.parametrize(
    ("end", "flags", "env", "role", "results"),
    [
        ("ends", [], {}, "worker", ALL_SUCCEEDED),
        ("killed", ["--role", "trainer", "--max_restarts", "3"], {}, "trainer", ALL_SUCCEEDED),
        # torch's agent has succeeded also if the ranks have failed.
        (
            "fails",
            ["--role", "trainer", "--max_restarts", "1"],
            {"PERSIA_ROLE": "dlrm"},
            "dlrm",
            {("agent", "SUCCEEDED"): 1, ("worker", "FAILED"): 1, ("worker", "TERMINATED"): 1},
        ),
    ],
)
def test_every_metric_and_event_of_torch_arrives(python, job, gateway, scripts, end, flags, env, role, results):
    ledger = scripts / "ledger"
    words = [python, scripts / "launcher.py", *TWO_RANKS, *flags, scripts / "train.py", end]
    agent = job.exec(*words, env={"LEDGER": str(ledger), **torch_environment(scripts), **env})
    assert agent.wait(120) == (1 if end == "fails" else 0), agent.output()
    shown = gateway.metrics()
    values, events = read_ledger(ledger)
    assert {"LocalElasticAgent._start_workers.success", "SimpleElasticAgent._rendezvous.success"} <= values.keys()
    for name, put in values.items():
        check_metric(shown, name, put, role)

    seen = events_of(shown)
    # The launcher's own ChildFailedError.
    assert seen.pop(("python", "uncaught_exception"), 0) == (1 if end == "fails" else 0)
    assert seen == events
    ends = {}  # later releases have events of other states, of the agent
    for (kind, name), count in events.items():
        if name in {f"{STATUS}{state}" for state in ("SUCCEEDED", "FAILED", "TERMINATED")}:
            ends[kind.removeprefix("torchelastic."), name.removeprefix(STATUS)] = count
    assert ends == results
    assert {kind for kind, _ in events} == {f"torchelastic.{kind}" for kind in ("agent", "worker", "rendezvous")}

    # The ranks' own metrics are beside those of their group.
    restarts = {"ends": 0, "killed": 1, "fails": 1}[end]
    for rank in range(2):
        steps = shown.one("torchelastic_train_step_duration_seconds_count", role=role, instance=f"rep_{rank}")
        assert steps == 3 * (1 + restarts)
    assert shown.one("torchelastic_worker_group_flakiness_ratio", role=role) == {"ends": 0, "killed": 0.25, "fails": 1}[end]
    assert shown.one("torchelastic_worker_group_run_results_total", result="failure", restarted="true") == (end == "fails")
    assert {dict(labels)["role"] for (_, labels), _ in shown.items() if "role" in dict(labels)} == {"agent", "launcher", role}


def test_the_records_have_what_torch_says(python, job, scripts):
    file = scripts / "events.jsonl"
    words = [python, "-m", "torch.distributed.run", *TWO_RANKS, scripts / "train.py", "ends"]
    agent = job.exec(*words, flags=[f"--events-file={file}"], env=torch_environment(scripts))
    assert agent.wait(120) == 0, agent.output()
    records = [json.loads(line) for line in file.read_text().splitlines()]
    ranks = [record for record in records if record["type"] == "torchelastic.worker"]
    assert sorted(record["metadata"]["global_rank"] for record in ranks) == [0, 1]
    assert {record["metadata"]["source"] for record in ranks} == {"WORKER"}
    assert {record["metadata"]["state"] for record in ranks} == {"SUCCEEDED"}
    met = [record["metadata"] for record in records if record["name"].endswith("DynamicRendezvousHandler.next_rendezvous")]
    assert "has joined round 0" in " ".join(metadata["message"] for metadata in met)


def test_the_module_needs_no_hook(job, gateway, scripts):
    words = [PYTHON, "-m", "persia_metrics.torchrun", *TWO_RANKS, scripts / "train.py", "ends"]
    agent = job.exec(*words, env={"PYTHONPATH": str(PYTHON_PACKAGE), **torch_environment(scripts)})
    assert agent.wait(120) == 0, agent.output()
    shown = gateway.metrics()
    assert shown.one("torchelastic_rendezvous_total", role="launcher", result="success") == 1
    assert shown.one("torchelastic_worker_group_runs_total", role="worker", instance="rep_0") == 1
    assert shown.one("persia_events_total", type="torchelastic.worker", event=f"{STATUS}SUCCEEDED") == 2


def test_a_launcher_of_ones_own_installs(job, gateway, tmp_path):
    job.agent()
    worker = job.python(
        """
import persia_metrics.torchelastic
import torch.distributed.elastic.metrics as metrics
from torch.distributed.elastic import events
assert persia_metrics.torchelastic.install() and persia_metrics.torchelastic.install()
metrics.put_metric("of.torch", 7)
metrics.put_metric("workers.default.run_total", 1)
events.record(events.Event("worker.started", events.EventSource.WORKER, 0, {"rank": 3}))
events.record(events.Event("worker.started", events.EventSource.WORKER), "console")
persia_metrics.torchelastic.events.record(events.Event("of.torchs.class", events.EventSource.AGENT, 0, {"rank": 3}), "console")
input()
"""
    )
    gateway.wait_for("persia_events_total", 2, seconds=120, event="worker.started", type="torchelastic.worker")
    gateway.wait_for("persia_events_total", 1, event="of.torchs.class", type="torchelastic.agent")
    gateway.wait_for("torchelastic_of_torch", 7)
    gateway.wait_for("torchelastic_worker_group_runs_total", 1, role="trainer")
    worker.succeed()


SHOW_IMPORTS = "import sys; print([name for name in ('persia_metrics_startup', 'persia_metrics', 'torch') if name in sys.modules])"


@pytest.mark.parametrize(("value", "loaded"), [(None, ["persia_metrics_startup"]), ("0", [])], ids=["by_default", "off"])
def test_exec_enables_the_hook_and_a_program_without_torch_loads_nothing(python, job, value, loaded):
    agent = job.exec(python, "-c", SHOW_IMPORTS, env={} if value is None else {"PERSIA_METRICS_TORCHELASTIC": value})
    assert agent.wait() == 0
    assert str(loaded) in agent.output()


def test_without_the_variable_nothing_is_loaded(python):
    assert run(python, "-c", SHOW_IMPORTS) == "[]\n"


def test_a_broken_installation_does_not_break_torch(job, tmp_path):
    """The native module is missing."""
    (tmp_path / "persia_metrics_startup.py").write_text((PYTHON_PACKAGE / "persia_metrics_startup.py").read_text())
    (tmp_path / "persia_metrics").mkdir()
    (tmp_path / "persia_metrics/__init__.py").write_text("from . import _native\n")
    script = """
import persia_metrics_startup
persia_metrics_startup.register(persia_metrics_startup.ELASTIC)
from torch.distributed.elastic.metrics import put_metric
put_metric("n", 1)
print("went on")
"""
    told = job.python(script, PYTHONPATH=str(tmp_path)).succeed()
    assert "persia_metrics: torch.distributed.elastic.metrics is not exported: ImportError" in told and "went on" in told


def test_a_handler_that_the_program_configures_stays(python, job, gateway, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        """
import torch.distributed.elastic.metrics as metrics
metrics.configure(metrics.ConsoleMetricHandler(), "mine")
metrics.put_metric("n", 1, "mine")
metrics.put_metric("n", 2, "other")
"""
    )
    agent = job.exec(python, script)
    assert agent.wait(120) == 0 and "][mine]: n=1" in agent.output()
    shown = gateway.metrics()
    assert shown.one("other_n", role="worker") == 2 and shown.one("mine_n") is None
