"""A series that its process removes is on no page any more, until the process has it again."""

from servers import wait_until

SHARDS = """
from persia_metrics import Counter, Gauge, TimeCost
rows = Counter("my_app", "rows", "Rows read.", ["shard"])
lag = Gauge("my_app", "lag", "Rows to read.", ["shard"])
cost = TimeCost("my_app", "read_time_cost", "A read.", ["shard"])
for shard in ("a", "b"):
    rows.labels(shard).inc(10)
    lag.labels(shard).set(3)
    cost.labels(shard).observe(0.5)
old = rows.labels("b")
print("counted")
input()
for metric in (rows, lag, cost):
    metric.remove("b")
old.inc(2)
print("removed")
input()
assert rows.labels("b").value() == 0
rows.labels("b").inc(5)
assert (old.value(), rows.labels("b").value()) == (5, 5)
print("again")
input()
rows.clear()
lag.remove_by_labels({"shard": "a"})
for wrong in (lambda: lag.remove("a"), lambda: rows.remove("none")):
    try:
        wrong()
        raise SystemExit("no KeyError")
    except KeyError:
        pass
for wrong in (lambda: rows.remove(), lambda: cost.labels("a").remove("a"), lambda: Gauge("my_app", "plain").clear(), lambda: lag.remove_by_labels({"x": "a"})):
    try:
        wrong()
        raise SystemExit("no ValueError")
    except ValueError:
        pass
print("cleared")
input()
"""


def test_a_removed_series_vanishes_and_goes_on_when_it_is_made_again(job, gateway):
    agent = job.agent()
    worker = job.python(SHARDS)
    worker.wait_for("counted")
    gateway.wait_for("my_app_rows", 10, shard="b")
    names = ("my_app_rows", "my_app_lag", "my_app_read_time_cost_count", "my_app_read_time_cost_sec")

    def have(shown, shard):
        return [name for name in names if shown.one(name, shard=shard) is not None]

    def wait_for(shard, expected):
        for of, metrics in (("the agent", agent.metrics), ("the gateway", gateway.metrics)):
            wait_until(lambda: have(metrics(), shard) == list(expected), f"the series of {shard} on {of}")

    wait_for("b", names)
    worker.go()
    worker.wait_for("removed")
    wait_for("b", ())
    assert have(agent.metrics(), "a") == list(names)

    agent.kill()
    agent = job.agent()
    wait_for("a", names)
    wait_for("b", ())

    worker.go()
    worker.wait_for("again")
    gateway.wait_for("my_app_rows", 17, shard="b")
    wait_for("b", names[:1])

    worker.go()
    worker.wait_for("cleared")
    wait_for("a", names[2:])
    worker.succeed()
    other = job.python("from persia_metrics import Counter\nCounter('my_app', 'later').inc()\ninput()")
    gateway.wait_for("my_app_later", 1)
    wait_for("a", names[2:])
    wait_for("b", ())
    other.succeed()


def test_infos_and_enums_are_removed_too(run_python):
    run_python(
        """
from persia_metrics import Enum, Info, snapshot
build = Info("my_app", "build", "", ["part"])
state = Enum("my_app", "state", "", ["part"], states=["a", "b"])

def parts(name):
    return [(series.labels["part"], series.value) for series in snapshot() if series.name == name and series.value is not None]

for part in ("one", "two", "three"):
    build.labels(part).info({"version": "1"})
    state.labels(part).state("b")
for metric in (build, state):
    metric.remove("one")
    for wrong in ("one", "none"):
        try:
            metric.remove(wrong)
            raise SystemExit("no KeyError")
        except KeyError:
            pass
assert parts("build_info") == [("two", 1), ("three", 1)] and parts("state") == [("two", 0), ("two", 1), ("three", 0), ("three", 1)]
build.labels("one").info({"version": "1"})
assert state.labels("one").value() == "a", "as a new one"
build.remove_by_labels({"part": "two"})
state.remove_by_labels({"part": "two"})
assert sorted(parts("build_info")) == [("one", 1), ("three", 1)] and sorted(parts("state")) == [("one", 0), ("one", 1), ("three", 0), ("three", 1)]
build.clear()
state.clear()
assert parts("build_info") == parts("state") == []
""",
        PERSIA_METRICS_ENABLED="1",
    )
