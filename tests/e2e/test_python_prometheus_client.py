"""prometheus_client with its values in the segment: a program does what it did, and the agent exports what it counts."""

import pytest
from conftest import PYTHON
from prometheus_client_program import PROGRAM
from servers import free_port
from torch_program import installed

HOOK = "import persia_metrics.prometheus_client\n"

@pytest.mark.parametrize("enabled", ["0", "1"])
@pytest.mark.parametrize("default", [False, True], ids=["own_registry", "default_registry"])
def test_a_program_prints_the_same_with_the_hook(run_python, segments, default, enabled):
    head = f"DEFAULT = {default}\n"
    theirs = run_python(head + PROGRAM, PROMETHEUS_DISABLE_CREATED_SERIES="true")
    where = {"PERSIA_METRICS_DIR": str(segments), "PERSIA_METRICS_ENABLED": enabled, "PROMETHEUS_DISABLE_CREATED_SERIES": "true"}
    ours = run_python(HOOK + head + PROGRAM, **where)
    assert theirs.count("ValueError") > 10 and "accepted" not in theirs
    told = "metric 'my_histogram' of another library is not exported: a histogram is copied with counted_by_others=False only, of this process"
    assert set(ours.splitlines()) - set(theirs.splitlines()) <= {told, told.replace("histogram", "summary")}
    assert [line for line in ours.splitlines() if "another library" not in line] == theirs.splitlines()


UNMODIFIED = """
import threading
from prometheus_client import *
requests = Counter("requests", "Requests.", ["code"], namespace="my_app")
requests.labels(200).inc(2)
requests.labels(code="500").inc(1, {"trace": "x"})
level = Gauge("level", "Level.", multiprocess_mode="livesum")
level.set(4); level.inc(); level.dec(2)
Gauge("zero", "Never set.")
latency = Summary("latency", "Latency.")
latency.observe(0.5); latency.observe(-2)
seconds = Histogram("step", "A step.", unit="seconds")
seconds.observe(0.06)
with seconds.time():
    pass
build = Info("build", "Build.")
build.info({"version": "1"}); build.info({"version": "2"})
state = Enum("state", "State.", states=["starting", "running"])
state.state("running")
removed = Gauge("removed", "Removed.", ["a"])
removed_count = Counter("removed_count", "Removed.", ["a"])
for name in ("kept", "gone"):
    removed.labels(name).set(2); removed_count.labels(name).inc(2)
depth = [3]
Gauge("depth", "Of a function.").set_function(lambda: depth[0])
Counter("own", "Of another registry.", registry=CollectorRegistry()).inc(3)
Counter("lone", "Of no registry.", registry=None).inc(4)
assert threading.active_count() == 1
print("ready", flush=True)
input()
depth[0] = 9
removed.remove("gone")
held = removed_count.labels("gone")
removed_count.clear()
held.inc(100)  # prometheus_client does not show it any more
removed_count.labels("new").inc()
print(REGISTRY.get_sample_value("my_app_requests_total", {"code": "200"}), REGISTRY.get_sample_value("depth"))
input()
removed_count.labels("gone").inc()
print(REGISTRY.get_sample_value("removed_count_total", {"a": "gone"}))
"""


def test_an_unmodified_program_is_exported(job, gateway, tmp_path):
    job.agent()
    worker = job.python(UNMODIFIED, PYTHONPATH=installed(tmp_path), PERSIA_METRICS_PROMETHEUS_CLIENT="1")
    worker.wait_for("ready")
    gateway.wait_for("depth", 3)
    shown = gateway.metrics()
    values = {
        **{("my_app_requests_total", ("code", code)): value for code, value in (("200", 2), ("500", 1))},
        **{("level",): 3, ("zero",): 0, ("latency_count",): 2, ("latency_sum",): -1.5, ("step_seconds_count",): 2},
        **{("step_seconds_bucket", ("le", "0.05")): 1, ("step_seconds_bucket", ("le", "0.075")): 2},
        **{("build_info", ("version", "2")): 1, ("build_info", ("version", "1")): None},
        **{("state", ("state", "running")): 1, ("state", ("state", "starting")): 0, ("own_total",): 3, ("lone_total",): 4},
        **{("removed", ("a", "gone")): 2, ("removed_count_total", ("a", "gone")): 2, ("python_info",): None},
    }
    assert {key: shown.one(key[0], **dict(key[1:])) for key in values} == values
    assert "# HELP my_app_requests_total Requests." in shown.text and "_created" not in shown.text
    assert "# TYPE latency summary" in shown.text
    worker.go()
    gateway.wait_for("removed_count_total", 1, a="new")
    gateway.wait_for("removed_count_total", None, a="gone")
    gateway.wait_for("removed", None, a="gone")
    assert gateway.metrics().one("removed", a="kept") == 2
    gateway.wait_for("depth", 9)
    assert worker.succeed().splitlines()[1:] == ["2.0 9.0", "1.0"]
    gateway.wait_for("removed_count_total", 3, a="gone")  # goes on, since a counter must not fall


def test_exec_instruments_and_what_it_kills_is_counted(job, gateway, tmp_path):
    (tmp_path / "train.py").write_text("import os, prometheus_client\nprometheus_client.Counter('c', 'C.').inc(2)\nos.kill(os.getpid(), 9)\n")
    agent = job.exec(PYTHON, tmp_path / "train.py", flags=["--instrument=prometheus_client"], env={"PYTHONPATH": installed(tmp_path)})
    assert agent.wait() == 137
    assert gateway.metrics().one("c_total") == 2


def test_without_the_flag_nothing_is_instrumented(job, gateway, tmp_path):
    (tmp_path / "train.py").write_text("import prometheus_client as p, sys\nprint(p.values.ValueClass.__name__, 'persia_metrics' in sys.modules)\n")
    agent = job.exec(PYTHON, tmp_path / "train.py", env={"PYTHONPATH": installed(tmp_path)})
    assert agent.wait() == 0 and "MutexValue False" in agent.output()


def test_a_push_beside_the_agent_is_a_group_of_its_own(job, gateway):
    """Each epoch has a registry of its own, as most programs that push do. The gateway refuses neither."""
    job.agent()
    worker = job.python(
        HOOK
        + f"""
import threading
from prometheus_client import *
for epoch in range(50):
    registry = CollectorRegistry()
    Gauge("loss", "L.", registry=registry).set(50 - epoch)
    Counter("batches", "B.", registry=registry).inc(2)
    Summary("latency", "S.", registry=registry).observe(1)
    Histogram("seconds", "S.", registry=registry).observe(1)
    Info("run", "R.", registry=registry).info({{"version": "1"}})
    push_to_gateway("{gateway.address}", job="own", grouping_key={{"zone": "a"}}, registry=registry)
    assert registry.get_sample_value("batches_total") == 2 and registry.get_sample_value("seconds_count") == 1
assert threading.active_count() == 1
"""
    )
    assert worker.succeed() == ""
    gateway.wait_for("batches_total", 100, job=job.name)
    shown = gateway.metrics()
    assert [shown.one(name, job=job.name) for name in ("loss", "latency_count", "seconds_count", "run_info")] == [1, 50, 50, 1]
    own = {"job": "own", "zone": "a"}
    assert [shown.one(name, **own) for name in ("loss", "batches_total", "latency_count", "seconds_count")] == [1, 2, 1, 1]
    assert shown.one("push_failure_time_seconds", **own) == shown.one("push_failure_time_seconds", role="trainer") == 0


def test_custom_collectors_are_copied_by_one_thread(job, gateway):
    """A total that a collector reads elsewhere is shown as it is, once, also of forked workers."""
    job.agent()
    worker = job.python(
        HOOK
        + """
import os, threading
from prometheus_client import *
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
total = [800]
class Card:
    def collect(self):
        yield GaugeMetricFamily("temperature", "T.", value=70)
        yield CounterMetricFamily("card_bytes", "B.", value=total[0])
        yield HistogramMetricFamily("card_seconds", "S.", buckets=[("1.0", 1), ("+Inf", 3)], sum_value=9)
class Broken:
    def describe(self):
        return []
    def collect(self):
        raise OSError("broken")
for collector in (Broken(), Card(), Broken()):
    REGISTRY.register(collector)
assert threading.active_count() == 2
for _ in range(3):
    if os.fork() == 0:
        assert threading.active_count() == 1
        os._exit(0)
    assert os.wait()[1] == 0
print("ready")
input()
total[0] = 806
REGISTRY.unregister(next(c for c in REGISTRY._collector_to_names if type(c) is Broken))
input()
"""
    )
    gateway.wait_for("card_bytes_total", 800)
    worker.go()
    gateway.wait_for("card_bytes_total", 806)
    assert gateway.metrics().one("temperature") == 70 and gateway.metrics().one("card_seconds_count") is None
    output = worker.succeed()
    assert output.count("OSError: broken") == 2 and output.count("'card_seconds' of another library is not exported") == 1, output


def test_forked_processes_count_exactly(job, gateway):
    """A child has its parent's values, as without the hook; the agent has each count once."""
    job.agent()
    job.python(
        HOOK
        + """
import multiprocessing, os
from prometheus_client import *
steps, ranks = Counter("steps", "S.", ["a"]), Gauge("ranks", "R.", multiprocess_mode="sum")
busy, last, each = Gauge("busy", "B.", multiprocess_mode="livesum"), Gauge("last", "L."), Gauge("each", "E.", multiprocess_mode="liveall")
histogram, summary = Histogram("h", "H.", buckets=[1]), Summary("s", "S.")
steps.labels("x").inc(5); histogram.observe(1); summary.observe(1); busy.inc(3); last.set(7)
def work(rank):
    for _ in range(1000):
        steps.labels("x").inc()
    ranks.set(1); histogram.observe(2); summary.observe(3); busy.inc(); each.set(rank)
    assert REGISTRY.get_sample_value("steps_total", {"a": "x"}) == 1005 and REGISTRY.get_sample_value("h_count") == 2
processes = [multiprocessing.get_context("fork").Process(target=work, args=(i,)) for i in range(2)]
for process in processes: process.start()
for process in processes: process.join(); assert process.exitcode == 0
assert REGISTRY.get_sample_value("steps_total", {"a": "x"}) == 5
print("counted")
input()
"""
    ).wait_for("counted")
    gateway.wait_for("steps_total", 2005, a="x")
    gateway.wait_for("s_sum", 7)
    shown = gateway.metrics()
    assert [shown.one(name) for name in ("h_count", "h_sum", "s_count", "last")] == [3, 5, 3, 7]


def test_metrics_that_were_made_before_move_with_their_values(run_python):
    run_python(
        """
import threading
from prometheus_client import *
counter, labelled = Counter("c", "C."), Counter("l", "L.", ["a"])
counter.inc(2, {"trace": "x"}); labelled.labels("x").inc(3)
gauge, level = Gauge("g", "G."), Gauge("level", "L.")
gauge.set_function(lambda: 4); level.set(5)
histogram, summary = Histogram("h", "H.", buckets=[1]), Summary("s", "S.")
histogram.observe(0.5); histogram.observe(7); summary.observe(-2)
info, enum = Info("i", "I."), Enum("e", "E.", states=["a", "b"])
info.info({"v": "1"}); enum.state("b")
created = counter._created
ended = threading.Event()
def count():
    while not ended.is_set():
        histogram.observe(0.5); labelled.labels("x").inc(0)
thread = threading.Thread(target=count); thread.start()
import persia_metrics
assert persia_metrics.prometheus_client.install()
ended.set(); thread.join()
counter.inc(); labelled.labels("x").inc(); histogram.observe(9); summary.observe(1)
read = persia_metrics.read_value
assert read("", "c_total") == REGISTRY.get_sample_value("c_total") == 3 and counter._created == created
assert counter._value.get_exemplar().labels == {"trace": "x"}
assert read("", "l_total", {"a": "x"}) == 4 and read("", "level") == 5 and read("", "s") == 2
assert read("", "h") == REGISTRY.get_sample_value("h_count") > 3
assert persia_metrics.snapshot().value("", "s").sum == REGISTRY.get_sample_value("s_sum") == -1
assert read("", "i_info", {"v": "1"}) == 1 and read("", "e", {"e": "b"}) == 1 and read("", "e", {"e": "a"}) == 0
assert REGISTRY.get_sample_value("g") == 4
""",
        PERSIA_METRICS_ENABLED="1",
    )


def test_the_name_is_prometheus_client_itself(run_python):
    run_python(
        """
import persia_metrics.prometheus_client as ours
import prometheus_client
from persia_metrics.prometheus_client import Counter, install
from persia_metrics.prometheus_client.core import CollectorRegistry
import persia_metrics.prometheus_client.bridge.graphite
import persia_metrics.prometheus_client.openmetrics.parser as parser
import prometheus_client.openmetrics.parser
assert ours is prometheus_client and Counter is prometheus_client.Counter and CollectorRegistry is prometheus_client.CollectorRegistry
assert parser is prometheus_client.openmetrics.parser and parser.__spec__.name == "prometheus_client.openmetrics.parser"
assert install() and install()
"""
    )


def test_another_storage_stays(run_python, tmp_path):
    told = run_python(
        HOOK
        + """
from prometheus_client import *
from prometheus_client.multiprocess import MultiProcessCollector
Counter("c", "C.").inc(2)
registry = CollectorRegistry()
MultiProcessCollector(registry)
assert registry.get_sample_value("c_total") == 2
import persia_metrics
assert not persia_metrics.prometheus_client.install()
assert persia_metrics.read_value("", "c_total") is None
""",
        PROMETHEUS_MULTIPROC_DIR=str(tmp_path),
        PERSIA_METRICS_ENABLED="1",
    )
    assert told.count("are not exported: they have another storage already, for example by PROMETHEUS_MULTIPROC_DIR") == 1, told


def test_what_the_library_refuses_still_counts_in_the_process(run_python):
    told = run_python(
        HOOK
        + """
import math
import persia_metrics
from prometheus_client import *
persia_metrics.Gauge("", "clash_total").set(1)
clash = Counter("clash", "C.")
clash.inc(2)
assert REGISTRY.get_sample_value("clash_total") == 2 and persia_metrics.read_value("", "clash_total") == 1
wide = Histogram("wide", "W.", buckets=range(600))
wide.observe(3)
same = Histogram("same", "S.", buckets=[1, 1, 2])
same.observe(1)
odd = Counter("odd", None)
odd.inc()
assert [REGISTRY.get_sample_value(name) for name in ("wide_count", "same_count", "odd_total")] == [1, 1, 1]
nan = Histogram("nan", "N.", buckets=[1])
nan.observe(math.nan); nan.observe(math.inf); nan.observe(0.5)
assert math.isnan(REGISTRY.get_sample_value("nan_sum")) and persia_metrics.snapshot().value("", "nan").buckets == (1, 1)
counter = Counter("again", "A.")
counter.inc(5); counter._value.set(2); counter._value.inc(1)
assert REGISTRY.get_sample_value("again_total") == 3 and persia_metrics.read_value("", "again_total") == 8
class Requests(Counter):
    def inc(self, amount=1, exemplar=None):
        super().inc(amount * 10)
Requests("requests", "R.", ["code"]).labels(200).inc(2)
assert REGISTRY.get_sample_value("requests_total", {"code": "200"}) == 20
""",
        PERSIA_METRICS_ENABLED="1",
    )
    assert told.count("odd_total is not exported: TypeError") == 1, told


def test_a_server_serves_beside_the_agent(job, gateway):
    port = free_port()
    job.agent()
    job.python(
        HOOK
        + f"""
import urllib.request
from prometheus_client import *
Counter("served", "S.").inc(3)
server = start_http_server({port}, addr="127.0.0.1")
with urllib.request.urlopen("http://127.0.0.1:{port}/metrics", timeout=10) as answer:
    assert "served_total 3.0" in answer.read().decode()
"""
    ).succeed()
    gateway.wait_for("served_total", 3)
