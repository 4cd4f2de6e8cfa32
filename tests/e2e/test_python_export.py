"""By default the values of torchelastic's and Benchmark AI's calls go to the gateway, if metrics are enabled."""

import json
import re

import pytest
from conftest import PYTHON, PYTHON_PACKAGE
from servers import wait_until

HANDLERS = """
import persia_metrics.torchelastic.metrics as metrics
from persia_metrics.torchelastic.events import api as events
print(type(metrics.getStream("my_app").handler).__name__, type(events._handler_of("torchelastic")).__name__)
metrics.put_metric("n", 1)
events.record("n")
"""


def records_in(file):
    """The event records of workers in the file."""
    lines = file.read_text().splitlines() if file.exists() else []
    return [record for record in map(json.loads, lines) if record["type"] != "persia.agent"]


def test_values_added_to_streams_arrive(job, gateway):
    job.agent()
    worker = job.python(
        """
import persia_metrics.torchelastic.metrics as metrics
ms = metrics.getStream(group="my_app")
for value in (3, 5, 4):
    ms.add_value("calculate_latency", value)
metrics.put_metric("of.default.group", 12)
metrics.put_metric("bad", "no number")
metrics.put_metric("bad", object())
metrics.put_metric("bad", 2)
metrics.getStream(None).add_value("ungrouped", 6)
input()
"""
    )
    gateway.wait_for("ungrouped", 6)
    shown = gateway.metrics()
    assert shown.one("my_app_calculate_latency", role="trainer") == 4
    assert shown.one("torchelastic_of_default_group") == 12
    assert shown.one("torchelastic_bad") == 2
    assert worker.succeed().count("dropped a value of") == 1


def test_events_count_whatever_their_handler_does(job, gateway):
    job.agent()
    worker = job.python(
        """
import threading
from persia_metrics.torchelastic.events import *
class Raises(EventHandler):
    def record(self, event):
        raise OSError("its own")
class Tee(EventHandler):
    def record(self, event):
        ExportingEventHandler().record(event)
class Blocks(EventHandler):
    def record(self, event):
        threading.Event().wait()
configure(NullEventHandler(), "null")
configure(Raises(), "raises")
configure(Tee(), "tee")
configure(Blocks(), "blocks")
record("by_default", metadata={"n": 1, "f": 0.5, "s": "x", "none": None, "b": True, "big": 2**80, "o": object(), 5: "key"})
record("large", metadata={str(i): "x" * 100 for i in range(1000)})
class Silent:
    def __str__(self):
        raise RuntimeError
record("broken", metadata={"bad": Silent()})
record("not_a_dict", metadata=["bad"])
record("e", "null")
record("e", "tee")
threading.Thread(target=record, args=("e", "blocks"), daemon=True).start()
for _ in range(3):
    try:
        record("e", "raises")
    except OSError:
        pass
record_event(Event("lone surrogate \\udc80"))
record("last")
input()
"""
    )
    gateway.wait_for("persia_events_total", 1, event="last", type="torchelastic")
    gateway.wait_for("persia_events_total", 1, type="blocks")
    shown = gateway.metrics()
    labels = [(dict(labels), value) for (name, labels), value in shown.items() if name == "persia_events_total"]
    counts = {(have["type"], have["event"]): value for have, value in labels}
    assert counts == {
        **{("torchelastic", name): 1 for name in ("by_default", "large", "broken", "not_a_dict", "last", "lone surrogate \\udc80")},
        **{("null", "e"): 1, ("tee", "e"): 1, ("blocks", "e"): 1, ("raises", "e"): 3},
    }
    worker.succeed()


def test_events_of_the_later_releases_count_apart_by_their_source(job, gateway, tmp_path):
    file = tmp_path / "events.jsonl"
    job.agent(f"--events-file={file}")
    worker = job.python(
        """
from persia_metrics.torchelastic.events import *
for destination in ("null", "console"):
    record(Event("started", source=EventSource.AGENT, metadata={"rank": 0}), destination)
record(Event("started", source=EventSource.WORKER))
record(event=Event("started", source=EventSource.WORKER, timestamp=1234), destination="null")
construct_and_record_rdzv_event("run", "joined", NodeState.RUNNING, name="joins")
record("last")
input()
"""
    )
    gateway.wait_for("persia_events_total", 1, event="last", type="torchelastic")
    shown = gateway.metrics()
    counts = {dict(labels)["type"]: value for (name, labels), value in shown.items() if name == "persia_events_total"}
    assert counts == {"torchelastic.agent": 2, "torchelastic.worker": 2, "torchelastic.rendezvous": 1, "torchelastic": 1}
    records = wait_until(lambda: (of_workers := records_in(file)) and len(of_workers) == 6 and of_workers, "six records")
    assert records[0]["metadata"]["rank"] == 0 and records[3]["timestamp"] == 1234
    assert records[4]["metadata"]["node_state"] == "RUNNING"
    worker.succeed()


def test_what_is_left_out_of_a_record_is_all_counted(job, tmp_path):
    file = tmp_path / "events.jsonl"
    job.agent(f"--events-file={file}")
    worker = job.python(
        """
from persia_metrics.torchelastic.events import record
for count in (5, 1000, 100_000):
    record(str(count), metadata={str(i): "x" * 50 for i in range(count)})
record("torch's", metadata={"raw_error": "e" * 5000, "rank": 3})
record("names", metadata={1: "a", "1": "b", True: "c", "True": "d"})
input()
"""
    )
    records = wait_until(lambda: (of_workers := records_in(file)) and len(of_workers) == 5 and of_workers, "five records")
    few, many, most, of_torch, named = records
    assert of_torch["metadata"]["rank"] == 3 and re.fullmatch("e{800,}[.]{3}", of_torch["metadata"]["raw_error"])
    assert named["metadata"] == {"1": "b", "True": "d"} and named["metadata_left_out"] == 1
    (line,) = [line for line in file.read_text().splitlines() if '"names"' in line]
    assert line.count('"1":') == 1
    assert len(few["metadata"]) == 5 and "metadata_left_out" not in few
    assert len(many["metadata"]) + many["metadata_left_out"] == 1000
    assert most["metadata_left_out"] == 65535  # as far as it counts
    worker.succeed()


def test_a_metric_and_an_event_of_one_name_are_two_things(job, gateway):
    job.agent()
    source = """
import persia_metrics.torchelastic.metrics as metrics
from persia_metrics.torchelastic.events import record
metrics.put_metric("restart", 7)
record("restart")
"""
    for count in (1, 2):  # the second call, after the effects of the first
        job.python(source).succeed()
        gateway.wait_for("persia_events_total", count, event="restart", type="torchelastic")
        gateway.wait_for("torchelastic_restart", 7)


def test_handlers_where_metrics_are_on(job):
    assert job.python(HANDLERS).succeed() == "ExportingMetricHandler ExportingEventHandler\n"


@pytest.mark.parametrize("env", [{}, {"PERSIA_METRICS_ENABLED": "0", "PERSIA_JOB_NAME": "off"}], ids=["not_asked_for", "disabled"])
def test_handlers_where_metrics_are_off(run_python, env):
    assert run_python(HANDLERS, **env) == "NullMetricHandler NullEventHandler\n"


def test_handlers_where_the_jobs_config_turns_metrics_off(job, gateway, tmp_path):
    config = tmp_path / "global_config.yaml"
    config.write_text("PersiaMetricsConfig:\n  enable_metrics: false\n  job_name: other\n")
    script = tmp_path / "train.py"
    script.write_text(HANDLERS)
    agent = job.exec(PYTHON, script, flags=[f"--config={config}"], env={"PYTHONPATH": str(PYTHON_PACKAGE)})
    assert agent.wait() == 0
    assert "NullMetricHandler NullEventHandler" in agent.output()


def test_a_handler_that_is_configured_stays(job):
    told = job.python(
        """
import persia_metrics.torchelastic.metrics as metrics
metrics.configure(metrics.ConsoleMetricHandler(), "mine")
metrics.put_metric("n", 1, "mine")
print(type(metrics.getStream("other").handler).__name__)
"""
    ).succeed()
    assert "][mine]: n=1\nExportingMetricHandler\n" in told


def test_segment_mode_arrives(job, gateway):
    job.agent()
    worker = job.python(
        """
import os
from persia_metrics.benchmarkai import emit
emit({"alexnet.batchsize16.latency": 12.5, "nan": float("nan"), "inf": float("inf")})
emit({"alexnet.batchsize16.latency": 11.5})
try:
    emit({"good": 1, "bad": None, "worse": object(), "good.too": 2})  # a bad value costs itself only
except TypeError as error:
    print(error)
if os.fork() == 0:
    emit({"of_child": 3})
    os._exit(0)
os.wait()
emit({"last": 1})
input()
""",
        BENCHMARK_AI="segment",
    )
    gateway.wait_for("benchmarkai_last", 1)
    gateway.wait_for("benchmarkai_of_child", 3)
    shown = gateway.metrics()
    assert shown.one("benchmarkai_alexnet_batchsize16_latency", role="trainer") == 11.5
    assert shown.one("benchmarkai_inf") == float("inf")
    assert str(shown.one("benchmarkai_nan")) == "nan"
    assert (shown.one("benchmarkai_good"), shown.one("benchmarkai_good_too")) == (1, 2)
    assert "not NoneType" in worker.succeed()


def test_fifo_mode_arrives_by_the_agents_pipe(job, gateway, tmp_path):
    fifo = tmp_path / "fifo"
    job.agent(f"--fifo={fifo}")
    worker = job.python(
        """
from persia_metrics.benchmarkai import emit
emit({"alexnet.batchsize16.latency": 12.5})
emit({f"metric.{i}": i for i in range(1000)})
""",
        BENCHMARK_AI="fifo",
        BENCHMARK_AI_FIFO_FILEPATH=str(fifo),
        BENCHMARK_AI_FIFO_WAIT_TIME_STEP="0.02",
    )
    worker.succeed()
    gateway.wait_for("benchmarkai_metric_999", 999)
    shown = gateway.metrics()
    assert shown.one("benchmarkai_alexnet_batchsize16_latency") == 12.5
    assert [shown.one(f"benchmarkai_metric_{i}") for i in range(1000)] == list(range(1000))


def test_install_without_torch_gives_false(run_python):
    hide = "import sys\nsys.modules['torch'] = None\n"
    assert run_python(hide + "import persia_metrics.torchelastic as t\nprint(t.install())\n") == "False\n"


def test_install_with_a_torch_that_cannot_be_loaded(run_python, tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("raise OSError('libtorch.so: broken')\n")
    told = run_python("import persia_metrics.torchelastic as t\nprint(t.install())\n")
    assert told.splitlines() == [
        "torch's own metrics and events are not exported: torch cannot be loaded: libtorch.so: broken",
        "False",
    ]


def test_a_torch_event_that_cannot_be_recorded_does_not_meet_torch(run_python):
    told = run_python(
        """
import json, logging
from persia_metrics.torchelastic import events
from persia_metrics.torchelastic.install import _event_log_handler
class Raises(events.EventHandler):
    def record(self, event):
        raise OSError("its own")
events.configure(Raises())
logger = logging.getLogger("torchelastic-events-null")
logger.setLevel("INFO")
logger.addHandler(_event_log_handler)
logger.info(json.dumps({"name": "a"}))
logger.info(json.dumps({"name": "b", "metadata": [1]}))
print("went on")
"""
    )
    assert told.splitlines()[-1] == "went on"
    assert told.count("--- Logging error ---") == 2 and "OSError: its own" in told and "TypeError" in told
