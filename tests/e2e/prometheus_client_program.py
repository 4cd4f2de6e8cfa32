"""A program of prometheus_client, as its users write it, that prints what it sees."""

# Each of prometheus_client's types and operations, and the exposition in both formats.
PROGRAM = """
import prometheus_client as package
from prometheus_client import core, Counter, Gauge, Summary, Histogram, Info, Enum
from prometheus_client.openmetrics import exposition as openmetrics
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
