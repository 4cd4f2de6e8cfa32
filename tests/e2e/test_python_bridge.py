"""persia_metrics.bridge: what other libraries count with the real prometheus_client reaches the agent, each count once."""

import pytest

EVERY_TYPE = """
import prometheus_client
from prometheus_client import *
from persia_metrics.bridge import RegistryCopy
counter = Counter("requests", "Requests.", ["code"])
counter.labels("200").inc(5)  # before the copy
copy = RegistryCopy(interval=0.05)
gauge, histogram, summary = Gauge("level", "Level.", ["a"]), Histogram("seconds", "S.", buckets=[1, 2]), Summary("latency", "L.")
Info("build", "B.").info({"version": "1"})
Enum("state", "S.", states=["off", "on"]).state("on")
"""


def test_every_type_arrives_exactly(job, gateway):
    agent = job.agent()
    worker = job.python(
        EVERY_TYPE
        + """
import threading
def work():
    for _ in range(5000):
        counter.labels("200").inc()
        histogram.observe(1.5)
        summary.observe(0.5)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
gauge.labels("x").set(7)
gauge.labels("gone").set(8)
print("counted")
input()
gauge.remove("gone")
counter.labels("new").inc(0.5)
summary.observe(-100)  # a counter cannot fall
histogram.observe(9)
copy.copy_now()
input()
"""
    )
    worker.wait_for("counted")
    gateway.wait_for("requests_total", 20_005, code="200")
    gateway.wait_for("level", 8, a="gone")
    gateway.wait_for("latency_sum", 10_000)
    gateway.wait_for("state", 1, state="on")
    shown = gateway.metrics()
    assert [shown.one("seconds_bucket", le=le) for le in ("1", "2", "+Inf")] == [0, 20_000, 20_000]
    assert (shown.one("seconds_sum"), shown.one("latency_count"), shown.one("latency_sum")) == (30_000, 20_000, 10_000)
    assert (shown.one("level", a="x"), shown.one("build_info", version="1")) == (7, 1)
    assert (shown.one("state", state="on"), shown.one("state", state="off")) == (1, 0)
    assert shown.one("python_info", implementation="CPython") == 1 and "# HELP requests_total Requests." in shown.text
    worker.go()
    gateway.wait_for("requests_total", 0.5, code="new")
    gateway.wait_for("latency_count", 20_001)
    gateway.wait_for("level", None, a="gone")
    gateway.wait_for("seconds_count", 20_001)
    assert gateway.metrics().one("latency_sum") == 10_000
    assert "process_cpu_seconds" not in agent.output(), "the agent's own metric has this name"
    worker.succeed()


def test_the_last_counts_arrive_at_exit(job, gateway):
    """The interval is longer than the program's life."""
    job.agent()
    job.python(
        """
import atexit
from prometheus_client import Counter
import persia_metrics.bridge
counter = Counter("steps", "S.")
counter.inc(1)
persia_metrics.bridge.RegistryCopy(interval=1000)
counter.inc(10)
"""
    ).succeed()
    gateway.wait_for("steps_total", 11)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_count_their_own(job, gateway, method):
    """A forked child has its parent's values in its memory; a child of its own has both."""
    job.agent()
    job.python(
        f"""
import multiprocessing, os, sys
from prometheus_client import Counter, Gauge, Histogram
from persia_metrics.bridge import RegistryCopy
counter, late = Counter("steps", "S.", ["a"]), Counter("late", "L.")
histogram = Histogram("seconds", "S.", buckets=[1])
def work(rank, grandchild):
    if {method!r} != "fork":
        RegistryCopy(interval=1000)
    for _ in range(100):
        counter.labels("x").inc()
    histogram.observe(0.5)
    late.inc()
    if grandchild and {method!r} == "fork":
        child = multiprocessing.get_context("fork").Process(target=work, args=(rank, False))
        child.start()
        child.join()
        assert child.exitcode == 0
if __name__ == "__main__":
    counter.labels("x").inc(7)
    copy = RegistryCopy(interval=1000)
    counter.labels("x").inc(1000)  # not copied before the forks
    Gauge("level", "L.").set(5)  # forked children have it, but do not set it
    histogram.observe(2)
    context = multiprocessing.get_context({method!r})
    processes = [context.Process(target=work, args=(rank, True)) for rank in range(3)]
    for process in processes: process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    child = os.fork()
    if child == 0:
        counter.labels("x").inc(50)
        sys.exit()
    assert os.waitpid(child, 0)[1] == 0
"""
    ).succeed()
    children = 6 if method == "fork" else 3
    gateway.wait_for("steps_total", 1007 + 100 * children + 50, a="x")
    gateway.wait_for("seconds_count", 1 + children)
    gateway.wait_for("late_total", children)
    gateway.wait_for("level", 5)  # copied last


def test_a_fork_while_a_lock_is_held_costs_the_childs_copy_only(job, gateway):
    """The child's registry can never be read: a thread that it has not holds the lock."""
    job.agent()
    worker = job.python(
        """
import os, threading, time
from prometheus_client import Counter, REGISTRY
from persia_metrics import Counter as Own
from persia_metrics.bridge import RegistryCopy
counter, own = Counter("steps", "S."), Own("", "own_steps")
copy = RegistryCopy(interval=0.05)
counter.inc(3)
holds, let_go = threading.Event(), threading.Event()
def hold():
    with REGISTRY._lock:
        holds.set()
        let_go.wait()
threading.Thread(target=hold).start()
holds.wait()
begin = time.monotonic()
child = os.fork()
if child == 0:
    own.inc()
    os._exit(0 if time.monotonic() - begin < 10 else 1)
assert os.waitpid(child, 0)[1] == 0
let_go.set()
counter.inc()
"""
    )
    output = worker.succeed()
    assert output.count("is not copied in the forked process") == 1, output
    gateway.wait_for("steps_total", 4)
    gateway.wait_for("own_steps", 1)


def test_a_registry_that_fails_or_blocks_costs_itself_only(job, gateway):
    job.agent()
    worker = job.python(
        """
import threading, time
from prometheus_client import Counter, CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from persia_metrics.bridge import RegistryCopy
class Raises:
    def collect(self):
        raise OSError("of a collector")
class Blocks:
    def collect(self):
        threading.Event().wait()
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
good = CollectorRegistry()
Counter("good", "G.", registry=good).inc(2)
for registry in (Raises(), Blocks(), Odd(), good):
    copy = RegistryCopy(registry, interval=0.05)
print("made")
input()
begin = time.monotonic()
import atexit
atexit.register(lambda: print("exits"))
"""
    )
    worker.wait_for("made")
    gateway.wait_for("good_total", 2)
    gateway.wait_for("twice_total", 14, a="reset")  # 10, and 4 after the reset
    assert gateway.metrics().one("twice_total", a="x") == 5
    output = worker.succeed()
    assert output.count("OSError: of a collector") == 1
    assert output.count("'falls' of another library is not exported") == 1
    assert output.count("'moves' of another library is not exported: it has changed its bounds") == 1, output


def test_nothing_is_copied_until_metrics_are_exported(run_python, segments):
    run_python(
        f"""
import time
import persia_metrics
from prometheus_client import Counter
from persia_metrics.bridge import RegistryCopy
counter = Counter("steps", "S.")
counter.inc(3)
with RegistryCopy(interval=0.01) as copy:
    copy.copy_now()
    assert len(persia_metrics.snapshot()) == 0
    persia_metrics.init(metrics_dir="{segments}")
    copy.copy_now()
    assert persia_metrics.snapshot().value("", "steps_total") == 3
    counter.inc(2)
assert persia_metrics.snapshot().value("", "steps_total") == 5
counter.inc()
copy.copy_now()
copy.close()
assert persia_metrics.snapshot().value("", "steps_total") == 5
"""
    )


def test_without_prometheus_client_the_error_names_it(run_python):
    run_python(
        """
import sys
sys.modules["prometheus_client"] = None
from persia_metrics.bridge import RegistryCopy
try:
    RegistryCopy()
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
assert len(took) >= 3 and min(took) < 0.9, took  # it did not wait for itself
"""
    )
