"""Reading back: a metric's value(), snapshot(), and persia_metrics.testing."""

EVERY_TYPE = """
import persia_metrics
from persia_metrics import Counter, Gauge, Histogram, HistogramValue, Stream, TimeCost, events, read_value, snapshot
"""


def test_a_metric_tells_its_value(run_python):
    run_python(
        EVERY_TYPE
        + """
counter, gauge, stream = Counter("g", "c"), Gauge("g", "g"), Stream("g", "s")
histogram, cost = Histogram("g", "h", bounds=(1, 2)), TimeCost("g", "t", bounds=(1,))
assert (counter.value(), gauge.value(), stream.value()) == (0, None, (0, 0, None))
assert histogram.value() == (0, 0, (1, 2), (0, 0, 0)) and cost.value() == (0, 0, (1,), (0, 0), None)
counter.inc(2); counter.inc(0.5); gauge.set(-3); stream.add(4); stream.add(5)
for value in (1, 1.5, 9):
    histogram.observe(value)
    cost.observe(value)
assert (counter.value(), gauge.value(), stream.value()) == (2.5, -3, (2, 9, 5))
assert histogram.value() == HistogramValue(3, 11.5, (1.0, 2.0), (1, 1, 1)) and cost.value() == (3, 11.5, (1.0,), (1, 2), 9)
gauge.unset()
assert gauge.value() is None
gauge.inc()
assert gauge.value() == 1
assert Histogram("g", "native", native_factor=2).value().count == 0
family = Counter("g", "family", "", ["b", "a"])
family.labels("x", "y\\ud800").inc()
assert family.labels(a="y\\ud800", b="x").value() == 1 and family.labels("y", "x").value() == 0
"""
    )


def test_a_snapshot_has_every_series(run_python):
    run_python(
        EVERY_TYPE
        + """
Counter("g", "c", "", ["a"]).labels("x").inc(2)
Gauge("", "unset")
TimeCost("g", "t", bounds=(1,)).observe(0.5)
events.record("g", "c")
events.record("g", "c")
before = snapshot()
assert [(each.kind, each.group, each.name, each.labels, each.value) for each in before] == [
    ("counter", "g", "c", {"a": "x"}, 2.0),
    ("gauge", "", "unset", {}, None),
    ("histogram", "g", "t", {}, (1, 0.5, (1.0,), (1, 0))),
    ("gauge", "g", "t_sec", {}, 0.5),
    ("event", "g", "c", {}, 2.0),
], list(before)
assert before.value("g", "c", {"a": "x"}) == 2 and before.value("g", "c") is None and before.value("g", "t").count == 1
assert read_value("g", "c", {"a": "x"}) == 2 and read_value("g", "t") == 1 and read_value("", "unset") is read_value("g", "c") is None
assert events.count("g", "c") == 2 and events.count("g", "other") == 0
assert before.events("g", "c") == 2 and before.events("g", "other") == 0 and len(before) == 5
Counter("g", "c", "", ["a"]).labels("x").inc(5)
Counter("g", "c", "", ["a"]).labels("new").inc(3)
TimeCost("g", "t", bounds=(1,)).observe(2)
events.record("g", "c")
since = snapshot().since(before)
assert [since.value("g", "c", {"a": label}) for label in ("x", "new")] == [5, 3]
assert since.value("g", "t") == (1, 2.0, (1.0,), (0, 1)) and since.value("g", "t_sec") == 2 and since.events("g", "c") == 1
assert before.value("g", "c", {"a": "x"}) == 2
"""
    )


def test_a_scope_sees_its_own_counts_only(run_python):
    run_python(
        EVERY_TYPE
        + """
from persia_metrics.testing import Scope
counter, gauge, level = Counter("g", "c", "", ["a"]), Gauge("g", "g"), Gauge("g", "level", merge="max")
counter.labels("x").inc(100); gauge.set(7); level.set(8)
histogram = Histogram("g", "h", bounds=(1,))
histogram.observe(5)
TimeCost("g", "t").observe(3)
events.record("g", "e")

def work():
    counter.labels("x").inc(2)
    counter.labels("y").inc()
    histogram.observe(0.5)
    level.inc(4)
    events.record("g", "e")
    TimeCost("g", "t").observe(0.25)

for _ in range(2):  # the second one does not see the first one's
    with Scope() as scope:
        assert scope.value("g", "level") is None and scope.value("g", "c", {"a": "x"}) == 0
        work()
        assert scope.value("g", "c", {"a": "x"}) == 2
        with Scope() as inner:
            counter.labels("x").inc()
            gauge.set(1)
        assert inner.value("g", "c", {"a": "x"}) == 1 and inner.value("g", "g") == 1 and inner.events("g", "e") == 0
    counter.labels("x").inc(50)  # after its end
    assert scope.value("g", "c", {"a": "x"}) == 3 and scope.value("g", "c", {"a": "y"}) == 1
    assert scope.value("g", "c", {"a": "never"}) is None
    assert scope.value("g", "h") == (1, 0.5, (1.0,), (1, 0)) and scope.value("g", "t_sec") == 0.25
    assert scope.value("g", "level") == 4 and scope.value("g", "g") is None and scope.events("g", "e") == 1
assert (gauge.value(), level.value(), counter.labels("x").value()) == (7, 8, 206)
assert TimeCost("g", "t").value().count == 3 and snapshot().value("g", "t_sec") == 3
try:
    with Scope() as failed:
        counter.labels("x").inc()
        raise KeyError
except KeyError:
    pass
assert failed.value("g", "c", {"a": "x"}) == 1 and gauge.value() == 7
"""
    )


def test_a_forked_child_reads_its_own_counts(run_python):
    run_python(
        EVERY_TYPE
        + """
import os
counter, gauge = Counter("g", "c"), Gauge("g", "g")
counter.inc(5); gauge.set(2)
child = os.fork()
if child == 0:
    good = counter.value() == 0 and gauge.value() is None
    counter.inc(2)
    os._exit(0 if good and counter.value() == 2 else 1)
assert os.waitpid(child, 0)[1] == 0 and counter.value() == 5
"""
    )
