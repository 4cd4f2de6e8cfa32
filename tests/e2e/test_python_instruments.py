"""persia_metrics.Counter, Gauge, Histogram, TimeCost and Stream, exported by the agent."""

import ast
import os
import re
import shutil

import pytest
from conftest import PYTHON, PYTHON_PACKAGE
from servers import ROOT

EVERY_METHOD = """
import time
from persia_metrics import Counter, Gauge, Histogram, Stream, TimeCost

batches = Counter("my_app", "batches", "Batches trained.")
batches.inc()
batches.inc(2)
batches.inc(amount=0.5)
batches.inc(-1)  # left out
pending = Gauge("my_app", "pending", "Batches that wait.")
pending.set(10)
pending.inc()
pending.dec(4)
started = Gauge("my_app", "started", "Unix time of the start.")
started.set_to_current_time()
latency = Histogram("my_app", "rpc_latency_seconds", "How long it takes.", unit="seconds", bounds=(0.1, 1))
latency.observe(0.05)
latency.observe(amount=0.5)
latency.observe(30)
sizes = Histogram("my_app", "sizes", "Native.", ["of"], native_factor=2, native_zero_threshold=1, native_max_value=64)
for size in (1, 3, 100):
    sizes.labels("rows").observe(size)

lookup = TimeCost("my_app", "lookup_time_cost", "A look-up.", ["of"], unit="seconds")
lookup.labels("rows").observe(0.5)
lookup.labels("rows").observe(seconds=0.25)
grads = Stream("my_app", "grad_norm", "Norms.", ["part"])
grads.labels("dense").add(3)
grads.labels("dense").add(value=2)

seen = Counter("my_app", "seen", "By feature.", ["feat", "kind"])
seen.labels("user_id", 1).inc(3)
seen.labels(kind="1", feat="user_id").inc(4)
assert seen.labels("user_id", "1") is seen.labels(feat="user_id", kind=1)

errors = Counter("my_app", "errors", "Errors.")
@errors.count_exceptions(ValueError)
def fails(error):
    raise error
for error in (ValueError(), UnicodeError(), KeyError()):  # two of them ValueErrors
    try:
        fails(error)
    except Exception as caught:
        assert caught is error
try:
    with errors.count_exceptions():
        raise OSError
except OSError:
    pass

under_way = Gauge("my_app", "under_way", "Calls under way.")
deepest = Gauge("my_app", "deepest", "Depth seen.")
@under_way.track_inprogress()
def recurse(depth):
    "Says so."
    if depth:
        recurse(depth - 1)
recurse(3)
assert recurse.__name__ == "recurse" and recurse.__doc__ == "Says so."
with under_way.track_inprogress():
    print("inside")
    input()

timed = Histogram("my_app", "timed", "Timed.", ["what"])
last = Gauge("my_app", "last", "Timed.")
@timed.labels("call").time()
@last.time()
def work():
    time.perf_counter()
work(); work()
with timed.time() as timer:
    timer.labels("block")
print("done")
input()
"""


def test_every_method_arrives_on_the_gateway(job, gateway):
    job.agent()
    worker = job.python(EVERY_METHOD)
    worker.wait_for("inside")
    gateway.wait_for("my_app_under_way", 1)
    worker.go()
    worker.wait_for("done")
    gateway.wait_for("my_app_under_way", 0)
    gateway.wait_for("my_app_timed_count", 1, what="block")
    shown = gateway.metrics()
    assert shown.one("my_app_batches", role="trainer", instance="rep_0") == 3.5
    assert shown.one("my_app_pending") == 7
    assert shown.one("my_app_started") > 1.6e9
    assert [shown.one("my_app_rpc_latency_seconds_bucket", le=le) for le in ("0.1", "1", "+Inf")] == [1, 2, 3]
    assert shown.one("my_app_rpc_latency_seconds_sum") == pytest.approx(30.55)
    bounds = ("1", "4", "16", "64", "+Inf")  # the default ones of the classic form, powers of four within the range
    assert [shown.one("my_app_sizes_bucket", of="rows", le=le) for le in bounds] == [1, 2, 2, 2, 3]
    assert shown.one("my_app_lookup_time_cost_sum", of="rows") == 0.75 and shown.one("my_app_lookup_time_cost_sec", of="rows") == 0.25
    assert shown.one("my_app_grad_norm", part="dense") == 2
    assert shown.one("my_app_seen", feat="user_id", kind="1") == 7
    assert shown.one("my_app_errors") == 3
    assert shown.one("my_app_timed_count", what="call") == 2
    assert shown.one("my_app_last") > 0
    assert "# HELP my_app_batches Batches trained." in shown.text
    assert shown.one("persia_metrics_dropped_total", reason="bad_value", role="trainer") == 1
    worker.succeed()


def test_characters_that_prometheus_does_not_allow_are_replaced(job, gateway):
    job.agent()
    names = {"top-1 accuracy": 1, "loss (train)": 2, "F1 of class a": 3, "Learning rate": 4, "GPU memory used": 5, "a.b/c d": 6}
    worker = job.python(f"from persia_metrics import Gauge\nfor name, value in {names}.items():\n    Gauge('val', name).set(value)\ninput()\n")
    for name, value in names.items():
        gateway.wait_for("val_" + re.sub("[^a-zA-Z0-9]", "_", name), value)
    worker.succeed()


# Each call with its error, or only the error's type.
REFUSED = {
    "Counter('', 'c').inc('x')": "TypeError",
    "Counter('', 'c').inc(1, 2)": "TypeError: inc() takes one number, 'amount', not 2 arguments",
    "Counter('', 'c').inc(1, amount=1)": "TypeError",
    "Gauge('', 'g').dec(amuont=1)": "TypeError: dec() got an unexpected keyword argument 'amuont' (there is 'amount')",
    "Gauge('', 'g').set()": "TypeError: set() takes one number, 'value', not 0 arguments",
    "Gauge('', 'g').set('1')": "TypeError",
    "Counter('c')": "TypeError",
    "Counter('', 5)": "TypeError: name must be str, not int",
    "Counter(None, 'c')": "TypeError: group must be str, not NoneType",
    "Histogram('', 'h', buckets=[1])": "TypeError: Histogram() has no argument 'buckets': here it is called 'bounds'",
    "TimeCost('', 'h', buckets=[1])": "TypeError: TimeCost() has no argument 'buckets': here it is called 'bounds'",
    "Counter('c', documentation='Text.', labelnames=['a'])": "TypeError: Counter() has no argument 'documentation': here it is called 'help'",
    "Gauge('', 'g', labelnames=['a'])": "TypeError: Gauge() has no argument 'labelnames': here it is called 'label_names'",
    "Gauge('', 'g', multiprocess_mode='sum')": "TypeError: Gauge() has no argument 'multiprocess_mode': here it is called 'merge'",
    "Enum(name='e', namespace='my_app', states=['a'])": "TypeError: Enum() has no argument 'namespace': here it is called 'group'",
    "Counter('', 'c', buckets=[1])": "TypeError",
    "Histogram('', 'h', unit=1)": "TypeError: unit must be str, not int",
    "Counter('', 'c', label_names='feat')": "TypeError",
    "Counter('', 'c', label_names=[1])": "TypeError: label_names must be str, not int",
    "Counter('', 'c', label_names=['\\ud800'])": "UnicodeEncodeError",
    "Counter('batches', 'Batches trained.')": "ValueError: 'Batches trained.' is a text, not a name: the arguments are (group, name, help, label_names)",
    "Counter('batches', 'Batches trained')": "ValueError",
    "Gauge('queue_length', 'Length of the queue')": "ValueError",
    "Counter('', 'c', 'doc', ['feat', 'feat'])": "ValueError",
    "Counter('', 'c', 'doc', ['feat']).inc()": "ValueError",
    "Gauge('', 'g', 'doc', ['feat']).set(1)": "ValueError",
    "Histogram('', 'h', 'doc', ['feat']).observe(1)": "ValueError",
    "TimeCost('', 't', '', ['feat']).observe(1)": "ValueError",
    "Stream('', 's', '', ['feat']).add(1)": "ValueError",
    "Counter('', 'c', '', ['feat']).value()": "ValueError",
    "Gauge('', 'g', '', ['feat']).unset()": "ValueError",
    "Counter('', 'c', '', ['feat']).count_exceptions()": "ValueError",
    "Gauge('', 'g', '', ['feat']).track_inprogress()": "ValueError",
    "Counter('', 'c', 'doc', ['feat']).labels()": "ValueError",
    "Counter('', 'c', 'doc', ['feat']).labels('a', 'b')": "ValueError",
    "Counter('', 'c', 'doc', ['feat']).labels(taef='a')": "ValueError",
    "Counter('', 'c', 'doc', ['feat']).labels('a', feat='a')": "ValueError",
    "Counter('', 'c', 'doc', ['feat']).labels('a').labels('b')": "ValueError",
    "Counter('', 'c').labels('a')": "ValueError",
    "Gauge('', 'g', merge='median')": "ValueError",
    "Histogram('', 'h', bounds=())": "ValueError",
    "Histogram('', 'h', bounds=(2, 1))": "ValueError",
    "Histogram('', 'h', bounds=(1, float('nan')))": "ValueError",
    "Histogram('', 'h', 'doc', ['le'])": "ValueError",
    "TimeCost('', 't', bounds=())": "ValueError",
    "Histogram('', 'h', native_factor=1)": "ValueError",
    "Histogram('', 'h', native_factor='x')": "TypeError",
    "Histogram('', 'h', native_factor=2, bounds=(1, 2))": "ValueError",
    "Histogram('', 'h', native_factor=2, native_max_buckets=-1)": "ValueError",
    "Histogram('', 'h', native_factor=2, native_zero_threshold=0)": "ValueError",
    "Histogram('', 'h', native_factor=2, native_max_value=1e-9)": "ValueError",
    "init(job_name=5)": "TypeError: job_name must be str, not int",
    "init(role=b'r')": "TypeError: role must be str, not bytes",
    "init(metrics_dir=5)": "TypeError: metrics_dir must be str or os.PathLike, not int",
    "init(replica='1')": "TypeError: replica must be int, not str",
    "init(replica=2**70)": f"ValueError: replica must be from 0 to 2147483647, not {2**70}",
    "init(labels={'zone': 1})": "TypeError: the value of label 'zone' must be str, not int",
    "init(labels={1: 'a'})": "TypeError: a label's name must be str, not int",
}


def test_wrong_calls_are_refused(run_python):
    told = run_python(
        f"""
from persia_metrics import Counter, Enum, Gauge, Histogram, Stream, TimeCost, init
for call in {list(REFUSED)}:
    try:
        eval(call)
        print("accepted")
    except Exception as error:
        print(f"{{type(error).__name__}}: {{error}}")
"""
    ).splitlines()
    assert len(told) == len(REFUSED), told
    for (call, error), seen in zip(REFUSED.items(), told):
        assert seen == error or seen.startswith(f"{error}: "), call


def test_what_is_taken_for_a_number(run_python):
    run_python(
        """
import decimal, fractions
from persia_metrics import Counter, Gauge, Histogram
class Tensor:
    def __float__(self):
        return 2.5
class Index:
    def __index__(self):
        return 3
for number in (True, 7, 2**70, 0.5, float("nan"), float("inf"), Tensor(), Index(), decimal.Decimal("1.5"), fractions.Fraction(1, 3)):
    Counter("", "c").inc(number)
    Gauge("", "g").set(number)
    Histogram("", "h").observe(number)
"""
    )


def test_whole_numbers_may_be_those_of_another_library(run_python):
    told = run_python(
        """
import persia_metrics
class Index:
    def __index__(self):
        return 3
calls = [getattr(persia_metrics, name) for name in ("set_step", "count_steps", "count_samples", "count_tokens", "set_total_steps")]
for call in calls:
    call(Index())
    for wrong in (3.0, "3", None, -1):
        try:
            call(wrong)
            print(call, wrong)
        except (TypeError, OverflowError):
            pass
print({series.name: series.value for series in persia_metrics.snapshot()})
""",
        PERSIA_METRICS_ENABLED="1",
    )
    progress = {"steps_total": 3, "samples_total": 3, "tokens_total": 3, "planned_steps": 3}
    assert ast.literal_eval(told) == {"step": 6, "first_step": 3, **progress}


def test_label_values_without_end_take_no_memory_without_end(run_python, segments):
    told = run_python(
        """
from persia_metrics import Counter, Enum, Info, TimeCost
from persia_metrics.labelled import _KEPT_UNASKED

families = [Counter("", "c", "", ["user"]), TimeCost("", "t", "", ["user"], bounds=[1])]
for family in families:
    for i in range(3 * _KEPT_UNASKED):
        family.labels(str(i))
kept = [len(family._children) for family in families]
print(kept)
assert families[0].labels("0") is families[0].labels("0"), "kept"
families[0].labels("0").inc()
assert families[0].labels("0").value() == 1
families[0].clear()
assert families[0]._children == {}
for i in range(2 * _KEPT_UNASKED):
    families[0].labels(str(i)).inc(2)
counted = [families[0].labels(str(i)).value() for i in range(2 * _KEPT_UNASKED)]
assert set(counted) == {0, 2} and len(families[0]._children) >= counted.count(2)
""",
        PERSIA_METRICS_DIR=str(segments),
        PERSIA_METRICS_SEGMENT_BYTES=str(3 << 20),
    )
    lines = told.splitlines()
    assert lines[0].startswith("persia-metrics: metric"), told
    assert all(10_000 <= int(count) < 25_000 for count in lines[1].strip("[]").split(",")), told


def test_a_class_made_of_ours_may_replace_a_method(run_python):
    told = run_python(
        """
from persia_metrics import Counter
class Loud(Counter):
    def inc(self, amount=1):
        print("inc", amount)
        super().inc(amount)
class Louder(Loud):
    pass
Loud("", "c").inc(2)
Louder("", "c", "doc", ["a"]).labels("x").inc(3)
"""
    )
    assert told.split("\n")[:2] == ["inc 2", "inc 3"]


def test_a_class_may_be_made_of_others_beside_ours(run_python):
    told = run_python(
        """
from persia_metrics import Counter
class Registered:
    def __init_subclass__(cls, tag=None, **kwargs):
        super().__init_subclass__(**kwargs)
        print("made", cls.__name__, tag)
class Tagged(Counter, Registered, tag="t"):
    pass
try:
    class Wrong(Counter, unknown=1):
        pass
except TypeError as error:
    print(error)
Tagged("", "c").inc()
"""
    )
    assert told.splitlines() == ["made Tagged t", "Wrong.__init_subclass__() takes no keyword arguments"]


def test_a_series_is_that_of_the_values_str(run_python):
    told = run_python(
        """
import enum
from persia_metrics import Counter
class Kind(str, enum.Enum):
    A = "a"
    def __str__(self):
        return "kind a"
family = Counter("", "c", "", ["kind"])
family.labels("a")
for value in (Kind.A, "a", "kind a", 1, 1.0, True, ["no", "hash"]):
    print(family.labels(value))
assert family.labels(Kind.A) is family.labels("kind a") is not family.labels("a")
"""
    )
    values = ["kind a", "a", "kind a", "1", "1.0", "True", "['no', 'hash']"]
    assert told.splitlines() == [f"<Counter c{ {'kind': value} }>" for value in values]


def test_a_label_value_without_utf8_is_written_as_an_escape(job, gateway):
    job.agent()
    source = "from persia_metrics import Counter\nCounter('', 'c', '', ['a']).labels('x\\ud800').inc(2)\ninput()\n"
    worker = job.python(source)
    gateway.wait_for("c", 2, a="x\\ud800")
    worker.succeed()


@pytest.mark.parametrize("parent", [b"/dev/shm", b"/proc"], ids=["good", "failing"])
def test_a_directory_may_have_any_name(run_python, parent):
    directory = os.fsdecode(parent + f"/persia-{os.getpid()}-".encode() + b"\xff")
    program = f"""
import os, persia_metrics
{{}}
print(result.exporting, result.detail.encode("utf-8", "surrogateescape").find(os.fsencode({directory!r})) >= 0)
"""
    expected = f"{parent == b'/dev/shm'} True"
    try:
        by_variable = run_python(program.format("result = persia_metrics.init()"), PERSIA_METRICS_DIR=directory)
        by_argument = run_python(program.format(f"result = persia_metrics.init(metrics_dir={directory!r})"))
        assert (by_variable.splitlines()[-1], by_argument.splitlines()[-1]) == (expected, expected)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def test_gauges_of_several_processes_merge_as_they_are_told(job, gateway):
    job.agent()
    source = """
import sys
from persia_metrics import Gauge
value = float(input())
Gauge("my_app", "sum", merge="sum").set(value)
Gauge("my_app", "max", merge="max").set(value)
Gauge("my_app", "min", merge="min").set(value)
print("set")
input()
"""
    for value in (2, 3, 5):
        worker = job.python(source)
        worker.popen.stdin.write(f"{value}\n")
        worker.popen.stdin.flush()
        worker.wait_for("set")
    gateway.wait_for("my_app_sum", 10)
    gateway.wait_for("my_app_max", 5)
    gateway.wait_for("my_app_min", 2)


def test_without_an_environment_nothing_is_exported_until_init(run_python, segments):
    told = run_python(
        f"""
import glob
import persia_metrics
counter = persia_metrics.Counter("my_app", "batches")
counter.inc(5)
print(persia_metrics.exporting(), glob.glob("{segments}/*.seg"))
result = persia_metrics.init(job_name="j", role="trainer", replica=3, labels={{"zone": "a"}}, metrics_dir="{segments}")
print(persia_metrics.exporting(), [result.detail] == glob.glob("{segments}/*.seg"))
"""
    )
    assert told.split("\n")[:2] == ["False []", "True True"]
    (segment,) = segments.glob("*.seg")
    text = segment.read_bytes()
    assert all(word in text for word in (b"\x06\0\0\0python", b"\x07\0\0\0trainer", b"zone", b"\x07\0\0\0batches"))


def test_disabled_metrics_cost_nothing_and_say_nothing(run_python, segments):
    told = run_python(
        """
import persia_metrics
from persia_metrics import Counter, Gauge, Histogram, Stream
assert (persia_metrics.exporting(), persia_metrics.init().exporting) == (False, False)
counter, gauge, histogram, stream = Counter("g", "c"), Gauge("g", "g"), Histogram("g", "h"), Stream("g", "s")
counter.inc(); gauge.set(1); histogram.observe(1); stream.add(1)
assert (counter.value(), gauge.value(), histogram.value(), stream.value()) == (0, None, (0, 0, (), ()), (0, 0, None))
assert len(persia_metrics.snapshot()) == 0
""",
        PERSIA_METRICS_ENABLED="0",
        PERSIA_METRICS_DIR=str(segments),
    )
    assert told == ""
    assert not list(segments.iterdir())


def sample_of(document):
    (sample,) = re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.S)
    return sample


def run_sample(job, tmp_path, sample, *arguments):
    script = tmp_path / "sample.py"
    script.write_text(sample)
    agent = job.exec(PYTHON, script, *arguments, env={"PYTHONPATH": str(PYTHON_PACKAGE)})
    assert agent.wait(90) == 0, agent.output()


def test_sample_of_the_package_runs(job, gateway, tmp_path):
    sample = sample_of("lib/python/README.md")
    run_sample(job, tmp_path, sample)
    (steps,) = re.findall(r"range\((\d+)\)", sample)
    gateway.wait_for("my_app_batches", int(steps))


def test_sample_of_the_readme_has_a_loss_that_falls(job, gateway, tmp_path):
    losses = []
    for steps in (1, 40):
        run_sample(job, tmp_path, sample_of("README.md"), str(steps))
        for name in ("my_app_batches_total", "my_app_step_time_cost_count", "persia_progress_steps_total"):
            gateway.wait_for(name, steps)
        losses.append(gateway.metrics().one("my_app_loss"))
    assert losses[0] > losses[1] > 0


@pytest.mark.static
@pytest.mark.parametrize(("language", "sleep"), [("python", r"sleep\((\d\.\d+)\)"), ("cpp", r"milliseconds\((\d+)\)")])
def test_samples_of_the_readme_live_two_minutes(language, sleep):
    """By default: long enough to see their charts."""
    (sample,) = re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    (steps,) = re.findall(r"argv.* (?:else|:) (\d+)", sample)
    (pause,) = re.findall(sleep, sample)
    assert int(steps) * float(pause) / (1000 if language == "cpp" else 1) == pytest.approx(120)
