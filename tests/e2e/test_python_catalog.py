"""persia_metrics.catalog and persia_metrics.events: the same metrics and events as in C++."""

import json

import catalog
from servers import wait_until

EVERY_METRIC = """
from persia_metrics import catalog, Counter, Gauge, TimeCost
for entry in catalog.ENTRIES.values():
    metric = getattr(catalog, entry.name)()
    assert type(metric) is {"counter": Counter, "gauge": Gauge, "time_cost": TimeCost}[entry.type]
    series = metric.labels("user_id") if entry.label else metric
    getattr(series, {"counter": "inc", "gauge": "set", "time_cost": "observe"}[entry.type])(2)
input()
"""


def test_the_tables_are_those_of_the_header(run_python):
    told = run_python(
        """
import inspect, json
from persia_metrics import catalog
functions = {name: inspect.getdoc(getattr(catalog, name)) for name in catalog.__all__ if inspect.isfunction(getattr(catalog, name))}
print(json.dumps([[list(entry) for entry in catalog.ENTRIES.values()], functions, catalog.GROUP]))
"""
    )
    entries, functions, group = json.loads(told)
    assert (entries, group) == ([list(entry) for entry in catalog.entries()], "persia")
    by_label = {entry.name: f"{entry.help} By the label `{entry.label}`." if entry.label else entry.help for entry in catalog.entries()}
    assert {name: " ".join(text.split()) for name, text in functions.items()} == by_label


def test_the_packages_modules_need_no_import_of_their_own(run_python):
    run_python(
        """
import sys
import persia_metrics
assert not [name for name in sys.modules if name.startswith(("persia_metrics.catalog", "persia_metrics.events", "persia_metrics.prometheus_client"))]
persia_metrics.catalog.nan_count().labels("user_id").inc()
persia_metrics.events.record("my_app", "checkpoint", {"bytes": 1024})
assert persia_metrics.events.count("my_app", "checkpoint") == 1
with persia_metrics.testing.Scope() as scope:
    persia_metrics.torchelastic.metrics.put_metric("loss", 0.25, "my_app")
for name in ("benchmarkai", "bridge", "prometheus_client", "torch"):
    assert getattr(persia_metrics, name) is sys.modules["persia_metrics." + name]
try:
    persia_metrics.catalogue
except AttributeError as error:
    assert "catalogue" in str(error)
else:
    raise SystemExit("no error")
"""
    )


def test_each_metric_arrives(job, gateway):
    job.agent()
    worker = job.python(EVERY_METRIC)
    gateway.wait_for("lookup_batched_time_cost_sum", 2)
    shown = gateway.metrics()
    for entry in catalog.entries():
        labels = {entry.label: "user_id"} if entry.label else {}
        suffixes = {"time_cost": ("_sum", "_sec")}.get(entry.type, ("",))
        assert [shown.one(entry.name + suffix, **labels) for suffix in suffixes] == [2] * len(suffixes), entry.name
        assert f"# HELP {entry.name} {entry.help}\n" in shown.text
    worker.succeed()


def test_python_and_cpp_make_one_metric(job, gateway):
    """With the default bounds, two processes of one identity merge: other bounds would be dropped with a line."""
    job.agent()
    cpp = job.worker()
    cpp.tell("observe persia lookup_rpc_time_cost 0.5")
    cpp.tell("count persia index_miss_count 3")
    python = job.python(
        """
from persia_metrics import Histogram, TimeCost, catalog
TimeCost("persia", "lookup_rpc_time_cost").observe(0.0002)
catalog.index_miss_count().inc(4)
input()
"""
    )
    gateway.wait_for("lookup_rpc_time_cost_count", 2)
    gateway.wait_for("index_miss_count", 7)
    shown = gateway.metrics()
    assert shown.one("lookup_rpc_time_cost_sum") == 0.5002
    assert [shown.one("lookup_rpc_time_cost_bucket", le=le) for le in ("0.0001", "0.00025", "0.5")] == [0, 1, 2]
    python.succeed()
    assert cpp.leave() == 0


def test_events_without_torchelastic(job, gateway, tmp_path):
    file = tmp_path / "events.jsonl"
    job.agent(f"--events-file={file}")
    cpp = job.worker()
    cpp.tell("event my_app checkpoint")
    python = job.python(
        """
from persia_metrics import events
class Raises(events.EventHandler):
    def record(self, event):
        raise OSError(event.name)
events.record("my_app", "checkpoint", {"bytes": 1024, "path": None, "loss": 0.5})
events.record("my_app", "checkpoint")
events.record(type="other", name="started")
events.configure("quiet", events.NullEventHandler())
events.record("quiet", "started", {"n": 1})
events.configure("raises", Raises())
try:
    events.record("raises", "failed")
except OSError as error:
    assert str(error) == "failed"
events.record("my_app", "last")
input()
"""
    )
    gateway.wait_for("persia_events_total", 1, type="my_app", event="last")
    gateway.wait_for("persia_events_total", 3, type="my_app", event="checkpoint")
    shown = gateway.metrics()
    for kind, name in (("other", "started"), ("quiet", "started"), ("raises", "failed")):
        assert shown.one("persia_events_total", type=kind, event=name) == 1

    def of_python():
        lines = map(json.loads, file.read_text().splitlines()) if file.exists() else ()
        records = [record for record in lines if record["type"] in ("my_app", "other") and "told" not in record["metadata"]]
        return len(records) == 4 and records

    first, *_ = wait_until(of_python, "four records")
    assert (first["name"], first["metadata"]) == ("checkpoint", {"bytes": 1024, "path": None, "loss": 0.5})
    python.succeed()
    assert cpp.leave() == 0
