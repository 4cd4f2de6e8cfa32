"""persia_metrics.bridge: what custom collectors of prometheus_client collect reaches the agent, by one thread."""

EVERY_TYPE = """
import threading
from prometheus_client import *
from prometheus_client.core import *
from persia_metrics.bridge import RegistryCopy
class Collector:
    count, total, level = 0, 0.0, {"x": 7, "gone": 8}
    def collect(self):
        counter = CounterMetricFamily("requests", "Requests.", labels=["code"])
        counter.add_metric(["200"], self.count, created=5)
        yield counter
        gauge = GaugeMetricFamily("level", "Level.", labels=["a"])
        for name, value in self.level.items():
            gauge.add_metric([name], value)
        yield gauge
        yield HistogramMetricFamily("seconds", "S.", buckets=[("1.0", 0), ("2.0", self.count), ("+Inf", self.count)], sum_value=self.total)
        yield SummaryMetricFamily("latency", "L.", count_value=self.count, sum_value=self.total)
        yield InfoMetricFamily("build", "B.", value={"version": "1"})
        yield StateSetMetricFamily("state", "S.", value={"off": False, "on": True})
collector = Collector()
collector.count, collector.total = 5, 2.5
registry = CollectorRegistry()
registry.register(collector)
"""


def test_what_a_collector_of_this_process_counts_is_added(job, gateway):
    job.agent()
    worker = job.python(
        EVERY_TYPE
        + """
copy = RegistryCopy(registry, 0.05, counted_by_others=False)
again = RegistryCopy(registry, 0.05)  # the same copy
assert threading.active_count() == 2
Counter("own", "Needs no copy.", registry=registry).inc(3)
print("counted")
input()
del collector.level["gone"]
collector.count, collector.total = 20_001, -100  # a counter cannot fall
copy.copy_now()
collector.count = 4  # a reset
copy.copy_now()
again.copy_now()
input()
"""
    )
    worker.wait_for("counted")
    gateway.wait_for("requests_total", 5, code="200")
    gateway.wait_for("state", 1, state="on")
    gateway.wait_for("latency_sum", 2.5)
    shown = gateway.metrics()
    assert [shown.one("seconds_bucket", le=le) for le in ("1", "2", "+Inf")] == [0, 5, 5]
    assert (shown.one("own_total"), shown.one("level", a="x"), shown.one("level", a="gone"), shown.one("build_info", version="1")) == (3, 7, 8, 1)
    assert shown.one("state", state="off") == 0 and "# HELP requests_total Requests." in shown.text and "_created" not in shown.text
    worker.go()
    gateway.wait_for("requests_total", 20_005, code="200")
    gateway.wait_for("seconds_count", 20_005)
    gateway.wait_for("latency_count", 20_005)
    gateway.wait_for("level", None, a="gone")
    assert gateway.metrics().one("latency_sum") == 2.5
    worker.succeed()


def test_a_total_that_others_count_is_shown_as_it_is(job, gateway):
    """Also of several processes, and after their restarts."""
    job.agent()
    for total in (800, 803, 806):
        worker = job.python(EVERY_TYPE + f"collector.count = {total}\nwith RegistryCopy(registry):\n    pass\n")
        output = worker.succeed()
        for kind in ("histogram", "summary"):
            assert output.count(f"a {kind} is copied with counted_by_others=False only") == 1
    gateway.wait_for("requests_total", 806, code="200")


def test_the_last_values_arrive_at_exit(job, gateway):
    """The interval is longer than the program's life."""
    job.agent()
    job.python(EVERY_TYPE + "RegistryCopy(registry, 1000, counted_by_others=False)\ncollector.count = 11\n").succeed()
    gateway.wait_for("requests_total", 11, code="200")


def test_a_registry_is_dropped_with_its_copy(run_python):
    run_python(
        EVERY_TYPE
        + """
import gc, weakref
from persia_metrics import bridge
for _ in range(100):
    dropped = CollectorRegistry()
    dropped.register(collector)
    RegistryCopy(dropped, interval=0.01)
gone = weakref.ref(dropped)
del dropped
gc.collect()
assert gone() is None and threading.active_count() == 2
bridge._copying.end()
bridge.RegistryCopy(registry)
assert len([copy for copy in bridge._copies if copy._registry() is not None]) == 1
""",
        PERSIA_METRICS_ENABLED="1",
    )


def test_collectors_that_raise_and_odd_families_cost_themselves(job, gateway):
    job.agent()
    worker = job.python(
        """
import time
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from persia_metrics.bridge import RegistryCopy
class Raises:
    def collect(self):
        raise OSError("of a collector")
class Odd:
    rounds = 0
    def collect(self):
        self.rounds += 1
        yield HistogramMetricFamily("falls", "H.", buckets=[("1.0", 5), ("+Inf", 3)], sum_value=1)
        yield HistogramMetricFamily("moves", "H.", buckets=[(str(float(self.rounds)), 5), ("+Inf", 9)], sum_value=1)
        family = CounterMetricFamily("twice", "C.", labels=["a"])
        family.add_metric(["x"], 5)
        family.add_metric(["x"], 7)
        family.add_metric(["reset"], 10 if self.rounds == 1 else 4)
        yield family
        yield object()
class Good:
    def collect(self):
        yield CounterMetricFamily("good", "G.", value=2)
registry = CollectorRegistry()
for one in (Raises(), Good()):
    registry.register(one)
for one in (Raises(), Odd(), registry):
    RegistryCopy(one, 0.05, counted_by_others=False)
print("made")
input()
"""
    )
    worker.wait_for("made")
    gateway.wait_for("twice_total", 14, a="reset")  # 10, and 4 after the reset
    gateway.wait_for("good_total", 2)
    assert gateway.metrics().one("twice_total", a="x") == 5
    output = worker.succeed()
    assert output.count("OSError: of a collector") == 2
    assert output.count("'falls' of another library is not exported") == 1
    assert output.count("'moves' of another library is not exported: it has changed its bounds") == 1, output


def test_a_collector_that_blocks_does_not_hold_up_the_exit(run_python, segments):
    run_python(
        f"""
import os, threading, time
import persia_metrics
from persia_metrics.bridge import RegistryCopy
persia_metrics.init(metrics_dir="{segments}")
class Blocks:
    def collect(self):
        collecting.set()
        threading.Event().wait()
collecting, blocks, begin = threading.Event(), Blocks(), time.monotonic()
copy = RegistryCopy(blocks)
collecting.wait()
if os.fork() == 0:
    os._exit(0)
assert os.wait()[1] == 0
copy.close()
assert time.monotonic() - begin < 10
"""
    )


def test_nothing_is_copied_until_metrics_are_exported(run_python, segments):
    run_python(
        EVERY_TYPE
        + f"""
import persia_metrics
with RegistryCopy(registry, 0.01, counted_by_others=False) as copy:
    copy.copy_now()
    assert len(persia_metrics.snapshot()) == 0
    persia_metrics.init(metrics_dir="{segments}")
    copy.copy_now()
    assert persia_metrics.snapshot().value("", "requests_total", {{"code": "200"}}) == 5
    collector.count += 2
assert persia_metrics.snapshot().value("", "requests_total", {{"code": "200"}}) == 7
collector.count += 1
copy.copy_now()
copy.close()
assert persia_metrics.snapshot().value("", "requests_total", {{"code": "200"}}) == 7
"""
    )


def test_without_prometheus_client_the_error_names_it(run_python):
    run_python(
        """
import sys
sys.modules["prometheus_client"] = None
import persia_metrics
from persia_metrics.bridge import RegistryCopy
for call in (RegistryCopy, lambda: persia_metrics.prometheus_client):
    try:
        call()
    except ImportError as error:
        assert "prometheus_client" in str(error)
    else:
        raise AssertionError
"""
    )


def test_a_fork_waits_for_a_copy_in_progress(run_python, segments):
    """A child that inherited the registry's locks from the copying thread could neither count nor be copied."""
    told = run_python(
        f"""
import os, threading, time
import persia_metrics
from persia_metrics.bridge import RegistryCopy
from prometheus_client.core import CounterMetricFamily
persia_metrics.init(metrics_dir="{segments}")
class Slow:
    def __init__(self):
        self.lock, self.collecting, self.count = threading.Lock(), threading.Event(), 0
    def collect(self):
        with self.lock:
            self.collecting.set()
            time.sleep(0.02)
            self.count += 1
            yield CounterMetricFamily("rounds", "R.", value=self.count)
slow = Slow()
copy = RegistryCopy(slow, interval=0.01)
for _ in range(10):
    slow.collecting.clear()
    assert slow.collecting.wait(10)
    child = os.fork()
    if child == 0:
        os._exit(0 if slow.lock.acquire(timeout=5) else 1)
    assert os.waitpid(child, 0)[1] == 0
copy.close()
"""
    )
    assert told == ""


def test_a_collector_may_fork(run_python, segments):
    run_python(
        f"""
import os, time
import persia_metrics
from persia_metrics.bridge import RegistryCopy
persia_metrics.init(metrics_dir="{segments}")
class Forks:
    def collect(self):
        if os.getpid() != parent:
            os._exit(9)  # a child that reads the registry would fork, and so on
        begin = time.monotonic()
        child = os.fork()
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        took.append(time.monotonic() - begin)
        return []
took, parent = [], os.getpid()
with RegistryCopy(Forks(), interval=1000) as copy:
    copy.copy_now()
assert len(took) >= 2 and min(took) < 0.9, took  # it did not wait for itself
"""
    )
