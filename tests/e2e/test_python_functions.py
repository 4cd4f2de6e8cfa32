"""set_function of gauges and counters, Info and Enum in Python."""

import subprocess

import pytest
from conftest import PYTHON_PACKAGE, environment
from test_python_interpreters import INTERPRETERS
from test_python_wheel import pythons

HEAD = """
import os, sys, threading, time
import persia_metrics
from persia_metrics import Counter, Enum, Gauge, Info, set_callback_period, snapshot
set_callback_period(0.01)
def becomes(condition):
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.001)
"""


@pytest.fixture
def counting(run_python):
    return lambda source, **env: run_python(HEAD + source, PERSIA_METRICS_ENABLED="1", **env)


def test_a_gauge_follows_its_function_and_a_counter_takes_its_increase(counting):
    counting(
        """
level = [3]
gauge = Gauge("g", "gauge", "", ["of"]).labels("queue")
gauge.set_function(lambda: level[0])
becomes(lambda: gauge.value() == 3)
level[0] = 4.5
becomes(lambda: gauge.value() == 4.5)
gauge.set_function(lambda: 7)
becomes(lambda: gauge.value() == 7)
gauge.set_function(None)
assert gauge.value() is None
gauge.set(1)  # it is an ordinary gauge again
other = Gauge("g", "other")
calls = []
other.set_function(lambda: calls.append(1) or len(calls))
becomes(lambda: other.value() and other.value() > 3)
assert gauge.value() == 1
total = [3]
counter = Counter("g", "counter")
counter.inc(100)
counter.set_function(lambda: total[0])
becomes(lambda: counter.value() == 103)
total[0] = 5
becomes(lambda: counter.value() == 105)
counter.set_function(None)
total[0] = 50
assert counter.value() == 105
for call in (lambda: Gauge("g", "family", "", ["a"]).set_function(len), lambda: gauge.set_function(3), lambda: set_callback_period(0)):
    try:
        call()
    except (ValueError, TypeError):
        continue
    raise AssertionError
"""
    )


def test_a_function_that_fails_has_no_value_and_costs_no_other(run_python, tmp_path):
    told = run_python(
        HEAD
        + """
os.dup2(1, 2)
result = [None]
def depth():
    if result[0] is None:
        raise OSError("broken")
    return result[0]
bad, good = Gauge("g", "bad"), Gauge("g", "good")
bad.set(7)
bad.set_function(depth)
good.set_function(lambda: 1)
becomes(lambda: good.value() == 1 and bad.value() is None)
result[0] = "no number"
calls = []
good.set_function(lambda: calls.append(1) or 2)
becomes(lambda: len(calls) > 3)
assert bad.value() is None
result[0] = 2
becomes(lambda: bad.value() == 2)
""",
        PERSIA_METRICS_ENABLED="1",
    )
    start, end = "persia-metrics: the function of a gauge or counter threw an exception: <function depth at 0x", (
        ">: OSError: broken; it has no value until the function returns one\n"
    )
    assert told.startswith(start) and told.endswith(end) and told.count("\n") == 1, told


def test_a_function_is_released_when_it_is_replaced(counting):
    counting(
        """
import weakref
class Depth:
    def __call__(self):
        return 1
gauge = Gauge("g", "gauge")
first = Depth()
gone = weakref.ref(first)
gauge.set_function(first)
del first
becomes(lambda: gauge.value() == 1)
assert gone() is not None
gauge.set_function(lambda: 2)
becomes(lambda: gone() is None)
gauges = [Gauge("g", str(i)) for i in range(500)]
for _ in range(5):  # while they run
    for each in gauges:
        each.set_function(Depth())
for each in gauges:
    each.set_function(None)
    assert each.value() is None
def ends_itself():
    gauge.set_function(None)
    return 9
gauge.set_function(ends_itself)
"""
    )


EXITS = {
    "none": "lambda: 1",
    "spins": "spin",
    "sleeps": "lambda: time.sleep(1000)",
    "waits for a lock": "held.acquire",
    "raises": "lambda: 1 / 0",
}
AT_EXIT = """
started = threading.Event()
def spin():
    while True:
        pass
held = threading.Lock()
held.acquire()
def function():
    started.set()
    return (FUNCTION)()
gauges = [Gauge("g", str(i)) for i in range(5)]
gauges[0].set_function(function)
for gauge in gauges[1:]:
    gauge.set_function(lambda: 2)
assert started.wait(30)
print("exits", flush=True)
"""


@pytest.mark.parametrize("name", EXITS)
def test_the_interpreter_ends_whatever_a_function_does(name, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(HEAD + AT_EXIT.replace("FUNCTION", EXITS[name]))
    env = environment(PYTHONPATH=str(PYTHON_PACKAGE), PERSIA_METRICS_ENABLED="1")
    for version, python in pythons().items():
        with subprocess.Popen([python, script], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            output, error = process.communicate(timeout=60)
        assert (process.returncode, output) == (0, "exits\n"), (version, error)
        assert "Fatal" not in error and "terminate" not in error, (version, error)


def test_a_forked_child_has_no_functions_but_may_set_some(counting):
    counting(
        """
calls = []
gauge, own = Gauge("g", "gauge"), Gauge("g", "own")
gauge.set_function(lambda: calls.append(os.getpid()) or 1)
becomes(lambda: len(calls) > 2)
for _ in range(5):  # also while a function runs
    child = os.fork()
    if child == 0:
        assert gauge.value() is None
        own.set_function(lambda: 5)
        becomes(lambda: own.value() == 5)
        assert gauge.value() is None and os.getpid() not in calls
        sys.exit(3)  # by the interpreter's end
    status = os.waitpid(child, 0)[1]
    assert os.WEXITSTATUS(status) == 3, status
before = len(calls)
becomes(lambda: len(calls) > before)
"""
    )


def test_a_subinterpreter_takes_no_function(tmp_path):
    """Python up to 3.11 would abort if it ended while the library's thread was in it."""
    script = tmp_path / "interpreters.py"
    script.write_text(
        INTERPRETERS
        + HEAD
        + """
main = Gauge("g", "main")
main.set_function(lambda: 1)
PROGRAM = '''
import persia_metrics
try:
    persia_metrics.Gauge("g", "sub").set_function(lambda: 2)
except RuntimeError:
    pass
else:
    raise AssertionError
'''
def run():
    interpreter = interpreters.create()
    failed = interpreters.run_string(interpreter, PROGRAM)
    assert failed is None, failed
    interpreters.destroy(interpreter)
    done.append(1)
done = []
for _ in range(3):
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
assert len(done) == 3
main.set_function(lambda: 4)  # a subinterpreter's end does not end the main interpreter's functions
becomes(lambda: main.value() == 4)
"""
    )
    env = environment(PYTHONPATH=str(PYTHON_PACKAGE), PERSIA_METRICS_ENABLED="1")
    for version, python in pythons().items():
        done = subprocess.run([python, script], env=env, capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, done.stderr) == (0, ""), (version, done.stderr)


def test_info_and_enum(job, gateway):
    job.agent()
    worker = job.python(
        """
from persia_metrics import Enum, Gauge, Info, read_value, set_callback_period
set_callback_period(0.05)
build = Info("my_app", "build", "What runs.", ["part"])
build.labels("all").info({"version": "1"})
build.labels("all").info({"version": "2", "by": "me"})
phase = Enum("my_app", "phase", "Phase.", states=["warm", "train", "done"])
assert phase.value() == "warm"
phase.state("train")
assert phase.value() == "train" and read_value("my_app", "phase", {"my_app_phase": "warm"}) == 0
def raises(error, call):
    try:
        call()
    except error:
        return
    raise AssertionError
raises(ValueError, lambda: phase.state("unknown"))
raises(ValueError, lambda: build.info({"a": "b"}))
raises(ValueError, lambda: build.labels("all").info({"part": "b"}))
raises(TypeError, lambda: build.labels("all").info({"a": 1}))
raises(ValueError, lambda: Enum("my_app", "none", states=[]))
raises(ValueError, lambda: Enum("my_app", "twice", states=["a", "a"]))
Enum("my_app", "family", "", ["rank"], states=["a", "b"]).labels(3).state("b")
depth = [5]
Gauge("my_app", "depth").set_function(lambda: depth[0])
print("ready")
input()
depth[0] = 6
phase.unset()
build.labels("all").unset()
assert phase.value() is None
input()
"""
    )
    worker.wait_for("ready")
    gateway.wait_for("my_app_depth", 5)
    gateway.wait_for("my_app_family", 1, rank="3", my_app_family="b")
    shown = gateway.metrics()
    assert shown.one("my_app_build_info", version="2", by="me", part="all") == 1 and shown.one("my_app_build_info", version="1") is None
    assert [shown.one("my_app_phase", my_app_phase=state) for state in ("warm", "train", "done")] == [0, 1, 0]
    worker.go()
    gateway.wait_for("my_app_depth", 6)
    gateway.wait_for("my_app_build_info", None)
    gateway.wait_for("my_app_phase", None, my_app_phase="train")
    worker.succeed()
