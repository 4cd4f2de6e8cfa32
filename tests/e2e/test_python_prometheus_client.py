"""persia_metrics.prometheus_client: programs for prometheus_client run with it, and the agent exports what they count."""

import pytest
from conftest import Samples
from servers import free_port, wait_until

# Each of prometheus_client's types and operations, and the exposition in both formats.
PROGRAM = """
import os
os.environ["PROMETHEUS_DISABLE_CREATED_SERIES"] = "true"
import importlib
package = importlib.import_module(PACKAGE)
core = importlib.import_module(PACKAGE + ".core")
openmetrics = importlib.import_module(PACKAGE + ".openmetrics.exposition")
Counter, Gauge, Summary, Histogram, Info, Enum = (getattr(package, n) for n in "Counter Gauge Summary Histogram Info Enum".split())
for collector in (package.PROCESS_COLLECTOR, package.PLATFORM_COLLECTOR, package.GC_COLLECTOR):
    package.REGISTRY.unregister(collector)
registry = package.REGISTRY if DEFAULT else package.CollectorRegistry(auto_describe=True)
r = {} if DEFAULT else {"registry": registry}

c = Counter("requests_total", "Requests\\nof \\\\ all.", ["method", "code"], namespace="my", subsystem="app", **r)
c.labels("get", 200).inc()
c.labels(code="500", method="po\\"st\\n\\\\").inc(2.5)
c.labels("get", "200").inc(amount=3)
c.labels("never", "0")
plain = Counter("plain", "Plain.", **r)
with plain.count_exceptions():
    pass
for error in (ValueError, KeyError):
    try:
        with plain.count_exceptions(ValueError):
            raise error
    except error:
        pass
g = Gauge("level", "Level.", unit="bytes", **r)
g.set("5"); g.inc(); g.dec(2.5)
Gauge("unset", "Never set.", **r)
never = Gauge("never", "No series.", ["a"], **r)
f = Gauge("size", "Of a function.", **r)
f.set_function(lambda: 7)
f.set(100); f.inc(); f.dec()
s = Summary("latency", "Latency.", ["a"], **r)
s.labels("x").observe(0.5); s.labels("x").observe(2)
h = Histogram("seconds", "Seconds.", unit="seconds", buckets=(0.1, 1, "2.5"), **r)
for value in (0.05, 0.1, 0.5, 1e6, 12345678.5):
    h.observe(value)
Histogram("default", "Default buckets.", ["a"], **r).labels("x").observe(0.3)
i = Info("build", "Build.", ["part"], **r)
i.labels("all").info({"version": "1.2", "by": "me"})
i.labels("all").info({"version": "1.3"})
e = Enum("state", "State.", states=["starting", "running", "stopped"], **r)
e.state("running")
gone = Counter("gone", "Removed ones.", ["a"], **r)
gone.labels("x").inc(9); gone.labels("y").inc(8); gone.remove("x")
gone.labels("x").inc()
cleared = Gauge("cleared", "Cleared ones.", ["a"], **r)
cleared.labels("x").set(9); cleared.clear()

class Custom:
    def collect(self):
        yield core.GaugeMetricFamily("my_gauge", "Help text", value=7)
        family = core.CounterMetricFamily("my_counter_total", "Help text", labels=["foo"])
        family.add_metric(["bar"], 1.7)
        family.add_metric(["baz"], 3.8, created=5, timestamp=1.25)
        yield family
        yield core.HistogramMetricFamily("my_histogram", "H.", buckets=[("1.0", 1), ("+Inf", 3)], sum_value=9)
        yield core.GaugeHistogramMetricFamily("my_gh", "H.", buckets=[("1.0", 1), ("+Inf", 3)], gsum_value=9)
        yield core.SummaryMetricFamily("my_summary", "S.", count_value=2, sum_value=3.5)
        yield core.InfoMetricFamily("my_info", "I.", value={"a": "b"})
        yield core.StateSetMetricFamily("my_states", "S.", value={"a": True, "b": False})
        yield core.UnknownMetricFamily("my_unknown", "U.", value=float("nan"))
registry.register(Custom())

errors = []
for call in (
    lambda: c.inc(), lambda: g.labels("x"), lambda: c.labels("x"), lambda: c.labels(a=1), lambda: c.labels("a", method="b"),
    lambda: plain.inc(-1), lambda: e.state("x"), lambda: Histogram("h2", "", buckets=(2, 1), **r),
    lambda: Histogram("h2", "", buckets=(), **r), lambda: Histogram("h2", "", ["le"], **r), lambda: Summary("s2", "", ["quantile"], **r),
    lambda: Counter("plain", "Again.", **r), lambda: Counter("bad name", "", **r), lambda: Counter("x", "", ["__a"], **r),
    lambda: Counter("x", "", ["a-b"], **r), lambda: Info("i2", "", unit="x", **r), lambda: i.labels("all").info({"part": "x"}),
    lambda: gone.remove("none"), lambda: gone.remove(), lambda: plain.remove("x"), lambda: Gauge("g2", "", multiprocess_mode="x", **r),
    lambda: core.Metric("x", "", "wrong"), lambda: core.GaugeMetricFamily("x", "", 1, ["a"]), lambda: registry.unregister(Custom()),
    lambda: c.labels("get", 200).inc(1, {"a b": "c"}), lambda: c.labels("get", 200).inc("x"), lambda: g.set("x"), lambda: h.observe(),
    lambda: never.set(1), lambda: never.inc(), lambda: never.dec(2), lambda: never.track_inprogress(), lambda: c.count_exceptions(),
    lambda: g.inc("x"), lambda: h.observe("x"), lambda: s.observe(1), lambda: e.labels("x"),
):
    try:
        call()
        errors.append("accepted")
    except Exception as error:
        errors.append(type(error).__name__)
c.labels("get", 200).inc(1, {"trace": "abc"})
print(errors)
print(registry.get_sample_value("my_app_requests_total", {"method": "get", "code": "200"}), registry.get_sample_value("none"))
print(str(plain), str(c.labels("get", 200)))
print(sorted(m.name for m in registry.restricted_registry(["plain_total", "level_bytes"]).collect()))
if hasattr(registry, "set_target_info"):
    registry.set_target_info({"env": "test"})
print(package.generate_latest(registry).decode())
text = openmetrics.generate_latest(registry).decode()
print("\\n".join(line.partition(" # ")[0] for line in text.splitlines()), text.count(' # {trace="abc"} 1.0 '))
registry.unregister(plain)
print(registry.get_sample_value("plain_total"))
again = Counter("plain", "Made again.", **r)
again.inc(2)
print(registry.get_sample_value("plain_total"))
"""


@pytest.mark.parametrize("default", [False, True], ids=["own_registry", "default_registry"])
def test_a_program_prints_the_same_with_both(run_python, default):
    head = f"DEFAULT = {default}\nPACKAGE = {{!r}}\n"
    theirs = run_python(head.format("prometheus_client") + PROGRAM)
    ours = run_python(head.format("persia_metrics.prometheus_client") + PROGRAM)
    assert theirs.count("ValueError") > 10 and "accepted" not in theirs
    assert ours.splitlines() == theirs.splitlines()


EXPORTED = """
import asyncio
import persia_metrics.prometheus_client as prometheus_client
from persia_metrics.prometheus_client import *
from persia_metrics.prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

requests = Counter("requests", "Requests.", ["code"], namespace="my_app")
requests.labels(200).inc(2)
requests.labels(code="500").inc(1, {"trace": "x"})
level = Gauge("level", "Level.", multiprocess_mode="livesum")
level.set(4); level.inc(); level.dec(2)
Gauge("zero", "Never set.")
latency = Summary("latency", "Latency.")
latency.observe(0.5)
seconds = Histogram("step", "A step.", unit="seconds")
seconds.observe(0.06)
@seconds.time()
async def step():
    pass
asyncio.run(step())
build = Info("build", "Build.")
build.info({"version": "1"})
build.info({"version": "2"})
state = Enum("state", "State.", states=["starting", "running"])
state.state("running")
removed = Gauge("removed", "Removed.", ["a"])
removed.labels("kept").set(1)
removed.labels("gone").set(2)
removed_count = Counter("removed_count", "Removed.", ["a"])
removed_count.labels("gone").inc(2)
removed_count.labels("kept").inc(1)

class Collector:
    def __init__(self):
        self.rounds = 0
    def collect(self):
        self.rounds += 1
        yield GaugeMetricFamily("custom_gauge", "Of a collector.", value=7)
        counter = CounterMetricFamily("custom_counter", "Of a collector.", labels=["foo"])
        counter.add_metric(["bar"], 5 + self.rounds if self.rounds < 3 else 8)
        yield counter
        yield HistogramMetricFamily("custom_histogram", "H.", buckets=[("1.0", 1), ("+Inf", 3)], sum_value=9)
class Broken:
    def describe(self):
        return []
    def collect(self):
        raise OSError("broken")
broken = Broken()
REGISTRY.register(broken)
REGISTRY.register(Collector())
depth = [3]
Gauge("depth", "Of a function.").set_function(lambda: depth[0])
own = CollectorRegistry()
Counter("own", "Of another registry.", registry=own).inc(3)
print("ready")
input()
depth[0] = 9
removed.remove("gone")
removed_count.remove_by_labels({"a": "gone"})
start_http_server(1, registry=own)
push_to_gateway("localhost:1", job="x", registry=own)
push_to_gateway("localhost:1", job="x", registry=REGISTRY)
delete_from_gateway("localhost:1", job="x")
Gauge("later", "Later.").set(1)
input()
REGISTRY.unregister(broken)
print(REGISTRY.get_sample_value("my_app_requests_total", {"code": "200"}), REGISTRY.get_sample_value("depth"))
"""


def test_the_agent_exports_what_a_program_registers(job, gateway):
    job.agent()
    worker = job.python(EXPORTED)
    worker.wait_for("ready")
    gateway.wait_for("depth", 3)
    gateway.wait_for("custom_counter_total", 8, foo="bar")
    shown = gateway.metrics()
    values = {
        **{("my_app_requests_total", ("code", code)): value for code, value in (("200", 2), ("500", 1))},
        **{("level",): 3, ("zero",): 0, ("latency_count",): 1, ("latency_sum",): 0.5, ("step_seconds_count",): 2},
        **{("step_seconds_bucket", ("le", "0.05")): 1, ("step_seconds_bucket", ("le", "0.075")): 2},
        **{("build_info", ("version", "2")): 1, ("build_info", ("version", "1")): None},
        **{("state", ("state", "running")): 1, ("state", ("state", "starting")): 0},
        **{("custom_gauge",): 7, ("custom_histogram_bucket", ("le", "1.0")): 1, ("custom_histogram_count",): 3, ("custom_histogram_sum",): 9},
        **{("own_total",): None, ("removed", ("a", "gone")): 2, ("removed_count_total", ("a", "gone")): 2, ("python_info",): None, ("process_start_time_seconds", ("role", "trainer")): None},
    }
    seen = {key: shown.one(key[0], **dict(key[1:])) for key in values if key != ("custom_histogram_bucket", ("le", "1.0"))}
    assert seen == {key: value for key, value in values.items() if key in seen}
    assert shown.one("custom_histogram_bucket", le="1") == 1
    assert "# HELP my_app_requests_total Requests." in shown.text and "_created" not in shown.text
    worker.go()
    gateway.wait_for("later", 1)
    gateway.wait_for("own_total", 3)
    gateway.wait_for("depth", 9)
    gateway.wait_for("removed", None, a="gone")
    gateway.wait_for("removed_count_total", None, a="gone")
    assert gateway.metrics().one("removed_count_total", a="kept") == 1
    assert gateway.metrics().one("removed", a="kept") == 1
    output = worker.succeed()
    assert output.splitlines()[-1] == "2.0 9.0"
    for call in ("start_http_server(1)", "push_to_gateway()", "delete_from_gateway()"):
        told = f"prometheus_client.{call} is left to the job's agent, which exports this process's metrics"
        assert output.splitlines().count(told) == 1, output
    assert output.count("is not exported") == 1 and "OSError: broken" in output


def test_without_an_agent_a_server_and_a_push_work(run_python, gateway):
    port = free_port()
    run_python(
        f"""
import urllib.request
import persia_metrics.prometheus_client as prometheus_client
from persia_metrics.prometheus_client import *
from persia_metrics.prometheus_client.exposition import basic_auth_handler
Counter("served", "S.").inc(3)
Counter("other", "O.").inc()
server, thread = start_http_server({port}, addr="127.0.0.1")
def get(path, **headers):
    with urllib.request.urlopen(urllib.request.Request("http://127.0.0.1:{port}" + path, headers=headers), timeout=10) as answer:
        return answer.headers["Content-Type"], answer.read().decode()
kind, text = get("/metrics")
assert kind == prometheus_client.CONTENT_TYPE_LATEST and "served_total 3.0\\n" in text and "python_info" in text, text
assert get("/?name[]=served_total")[1] == "# HELP served_total S.\\n# TYPE served_total counter\\nserved_total 3.0\\n"
kind, text = get("/", Accept="application/openmetrics-text; version=1.0.0")
assert kind.startswith("application/openmetrics-text") and text.endswith("# EOF\\n")
server.shutdown(); server.server_close(); thread.join(10)
assert not thread.is_alive()

registry = CollectorRegistry()
Gauge("pushed", "P.", ["a"], registry=registry).labels("x/y").set(4)
push_to_gateway("{gateway.address}", job="batch", registry=registry, grouping_key={{"path": "a/b", "empty": "", "zone": "z 1"}})
more = CollectorRegistry()
Gauge("added", "A.", registry=more).set(5)
pushadd_to_gateway("http://{gateway.address}/", job="batch", registry=more, grouping_key={{"path": "a/b", "empty": "", "zone": "z 1"}})
push_to_gateway("{gateway.address}", job="gone", registry=more, handler=lambda *a, **k: basic_auth_handler(*a, username="u", password="p", **k))
delete_from_gateway("{gateway.address}", job="gone")
""",
        PERSIA_METRICS_ENABLED="1",
    )
    # A gateway deletes after it has answered.
    wait_until(lambda: {group["labels"]["job"] for group in gateway.groups()} == {"batch"}, "the group to be deleted")
    shown = gateway.metrics()
    assert shown.one("pushed", job="batch", a="x/y", path="a/b", zone="z 1") == 4 and shown.one("added", job="batch") == 5


def test_a_text_file_is_written_whole(run_python, tmp_path):
    run_python(
        f"""
from persia_metrics.prometheus_client import *
registry = CollectorRegistry()
Gauge("raid", "R.", registry=registry).set(1)
write_to_textfile("{tmp_path}/raid.prom", registry)
class Broken:
    def collect(self):
        raise OSError
registry.register(Broken())
try:
    write_to_textfile("{tmp_path}/raid.prom", registry)
except OSError:
    pass
"""
    )
    assert Samples((tmp_path / "raid.prom").read_text()).one("raid") == 1
    assert [path.name for path in tmp_path.glob("raid*")] == ["raid.prom"]


def test_asgi_and_wsgi_serve_under_an_agent_too(job, gateway):
    job.agent()
    worker = job.python(
        """
import asyncio
from wsgiref.util import setup_testing_defaults
from persia_metrics.prometheus_client import *
Counter("c", "C.").inc(2)
environ, told = {}, []
setup_testing_defaults(environ)
body = b"".join(make_wsgi_app()(environ, lambda status, headers: told.append((status, dict(headers)))))
assert b"c_total 2.0" in body and told == [("200 OK", {"Content-Type": CONTENT_TYPE_LATEST})]
environ["REQUEST_METHOD"] = "POST"
make_wsgi_app()(environ, lambda status, headers: told.append(status))
assert told[1] == "405 Method Not Allowed"
sent = []
async def main():
    async def receive():
        return {"type": "http.request"}
    async def send(message):
        sent.append(message)
    scope = {"type": "http", "headers": [(b"accept-encoding", b"gzip")], "query_string": b"name[]=c_total"}
    await make_asgi_app()(scope, receive, send)
asyncio.run(main())
import gzip
assert gzip.decompress(sent[1]["body"]) == b"# HELP c_total C.\\n# TYPE c_total counter\\nc_total 2.0\\n", sent
"""
    )
    worker.succeed()


def test_forked_processes_count_exactly(job, gateway):
    job.agent()
    job.python(
        """
import multiprocessing, os
from persia_metrics.prometheus_client import *
steps, level = Counter("steps", "S.", ["a"]), Gauge("ranks", "R.", multiprocess_mode="sum")
histogram, summary = Histogram("h", "H.", buckets=[1]), Summary("s", "S.")
steps.labels("x").inc(5); histogram.observe(1); summary.observe(1)
def work(rank):
    for _ in range(1000):
        steps.labels("x").inc()
    level.set(1); histogram.observe(2); summary.observe(3)
    assert REGISTRY.get_sample_value("steps_total", {"a": "x"}) == 1000
    assert REGISTRY.get_sample_value("h_count") == 1
processes = [multiprocessing.get_context(method).Process(target=work, args=(i,)) for i, method in enumerate(("fork", "fork"))]
for process in processes: process.start()
for process in processes: process.join(); assert process.exitcode == 0
assert REGISTRY.get_sample_value("steps_total", {"a": "x"}) == 5
"""
    ).succeed()
    gateway.wait_for("steps_total", 2005, a="x")
    gateway.wait_for("h_count", 3)
    gateway.wait_for("s_sum", 7)
    assert gateway.metrics().one("h_sum") == 5


def test_a_metric_that_is_made_again_starts_at_0(run_python):
    run_python(
        """
from persia_metrics.prometheus_client import *
def value(name, **labels):
    return REGISTRY.get_sample_value(name, labels)
for round in range(3):
    counter, histogram, summary = Counter("c", "", ["a"]), Histogram("h", "", buckets=[1]), Summary("s", "")
    gauge = Gauge("g", "")
    assert value("c_total", a="x") is None and value("h_count") == value("s_count") == value("s_sum") == value("g") == 0
    counter.labels("x").inc(2); histogram.observe(0.5); summary.observe(3); summary.observe(-1); gauge.set(7)
    assert value("c_total", a="x") == 2 and value("h_sum") == 0.5 and value("s_sum") == 2 and value("s_count") == 2
    counter.clear()
    counter.labels("x").inc()
    assert value("c_total", a="x") == 1
    counter.labels("x").reset()
    assert value("c_total", a="x") == 0
    counter.labels("x").inc(4)
    assert value("c_total", a="x") == 4
    counter.labels("y").inc()
    counter.remove_by_labels({"a": "y"})
    assert value("c_total", a="y") is None
    for metric in (counter, histogram, summary, gauge):
        REGISTRY.unregister(metric)
"""
    )


def test_a_subclass_may_take_other_arguments(run_python):
    run_python(
        """
from persia_metrics.prometheus_client import *
class Requests(Counter):
    def __init__(self):
        super().__init__("requests", "R.", ["code"])
    def inc(self, amount=1, exemplar=None):
        super().inc(amount * 10)
class Own(Histogram):
    pass
requests = Requests()
requests.labels(200).inc(2)
assert REGISTRY.get_sample_value("requests_total", {"code": "200"}) == 20
own = Own("own", "O.", buckets=[1], registry=CollectorRegistry())
own.observe(2)
assert type(requests.labels(200)) is Requests and isinstance(own, Histogram)
"""
    )


def test_every_name_of_the_package_is_there(run_python):
    run_python(
        """
import importlib, prometheus_client
import persia_metrics.prometheus_client as ours
assert set(prometheus_client.__all__) <= set(ours.__all__), set(prometheus_client.__all__) - set(ours.__all__)
for module in ("core", "registry", "metrics", "metrics_core", "samples", "exposition", "context_managers", "openmetrics.exposition", "utils",
               "gc_collector", "platform_collector", "process_collector", "asgi", "multiprocess"):
    theirs = importlib.import_module("prometheus_client." + module)
    our = importlib.import_module("persia_metrics.prometheus_client." + module)
    public = getattr(theirs, "__all__", [n for n, v in vars(theirs).items() if getattr(v, "__module__", None) == theirs.__name__])
    missing = [name for name in public if name[0] != "_" and len(name) > 1 and not hasattr(our, name)]
    assert not missing, (module, missing)
"""
    )
