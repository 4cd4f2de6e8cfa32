"""A Python process's counts survive threads, forks, the interpreter's exit and SIGKILL, exactly."""

import mmap
import struct
from collections import Counter

import pytest
from servers import wait_until

KILLED = """
import mmap
from persia_metrics import Counter, Histogram

with open({ledger!r}, "r+b") as file:
    ledger = memoryview(mmap.mmap(file.fileno(), 16)).cast("Q")
counter = Counter("my_app", "steps")
half = Counter("my_app", "halves")
done = 0
while True:
    ledger[0] = done + 1  # about to
    counter.inc()
    half.inc(0.5)
    done += 1
    ledger[1] = done
"""


@pytest.mark.parametrize("steps", [1, 1000, 300_000])
def test_sigkill_in_a_loop_of_inc_loses_nothing(job, gateway, tmp_path, steps):
    job.agent()
    path = tmp_path / "ledger"
    path.write_bytes(bytes(16))
    worker = job.python(KILLED.format(ledger=str(path)))
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 16, prot=mmap.PROT_READ) as ledger:
        wait_until(lambda: struct.unpack("QQ", ledger[:])[1] >= steps, "the worker's steps", interval=0)
        worker.kill()
        begun, done = struct.unpack("QQ", ledger[:])
    gateway.wait_for("persia_process_up", 0)
    shown = gateway.metrics()
    # The count in progress may or may not be included.
    assert begun - done <= 1
    assert done <= shown.one("my_app_steps") <= begun
    assert done <= 2 * shown.one("my_app_halves") <= begun


def test_threads_count_each_one(job, gateway):
    job.agent()
    worker = job.python(
        """
import threading
from persia_metrics import Counter, Gauge, Histogram
counter = Counter("my_app", "steps")
family = Counter("my_app", "by_feature", "", ["feat"])
gauge = Gauge("my_app", "level")
histogram = Histogram("my_app", "sizes", bounds=(1, 2))
def work():
    for i in range(20_000):
        counter.inc()
        gauge.inc()
        histogram.observe(1.5)
        family.labels(i % 7).inc()
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
    )
    worker.succeed()
    def by_feature():
        return sum(value for (name, _), value in gateway.metrics().items() if name == "my_app_by_feature")

    wait_until(lambda: by_feature() == 160_000, "what each thread counts last")
    shown = gateway.metrics()
    assert shown.one("my_app_steps") == shown.one("my_app_level") == 160_000
    assert shown.one("my_app_sizes_bucket", le="2") == shown.one("my_app_sizes_count") == 160_000


def test_forked_children_count_on_from_nothing(job, gateway):
    job.agent()
    worker = job.python(
        """
import os
import threading
from persia_metrics import Counter, Gauge
counter = Counter("my_app", "steps")
counter.inc(1000)
stop = threading.Event()
def busy():  # so that a fork meets a process at work
    while not stop.is_set():
        Counter("my_app", "busy", "", ["n"]).labels("x").inc()
thread = threading.Thread(target=busy)
thread.start()
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        counter.inc()
        Counter("my_app", "of_child").inc(2)
        os._exit(0)  # no handler of the interpreter runs
    assert os.waitpid(pid, 0)[1] == 0
stop.set()
thread.join()
counter.inc()
"""
    )
    worker.succeed()
    gateway.wait_for("my_app_steps", 1021)
    gateway.wait_for("my_app_of_child", 40)


@pytest.mark.parametrize("end", ["os._exit(0)", "os._exit(1)", "sys.exit()", "os.kill(os.getpid(), 9)"])
def test_a_child_that_has_ended_before_the_first_collection_is_no_predecessor(job, end):
    worker = job.python(
        f"""
import os, sys
from persia_metrics import Counter
counter = Counter("my_app", "steps")
counter.inc()
child = os.fork()
if child == 0:
    counter.inc()
    {end}
os.waitpid(child, 0)
print("forked")
input()
"""
    )
    worker.wait_for("forked")
    agent = job.agent()
    wait_until(lambda: agent.metrics().one("my_app_steps") == 2, "both counts")
    shown = agent.metrics()
    assert (shown.one("persia_process_up", process="0"), shown.one("persia_process_up", process="1")) == (1, 0)
    assert shown.one("persia_process_restarts_total", process="0") == 0
    worker.succeed()
    agent.await_collections(2)
    assert " died" not in agent.output() and "started again" not in agent.output()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(job, gateway, method):
    job.agent()
    worker = job.python(
        f"""
import multiprocessing
from persia_metrics import Counter, Gauge, Histogram
steps = Counter("my_app", "steps", "Steps.")

def work(counter, histogram, level, n):
    steps.inc()
    counter.inc(n)  # sent by pickle
    histogram.observe(n)
    level.set(n)

if __name__ == "__main__":
    steps.inc(100)
    features = Counter("my_app", "features", "By feature.", ["feat"])
    sizes = Histogram("my_app", "sizes", "Sizes.", bounds=(2, 4))
    level = Gauge("my_app", "level", "Level.", merge="max")
    context = multiprocessing.get_context({method!r})
    with context.Pool(3) as pool:
        pool.starmap(work, [(features.labels("user_id"), sizes, level, n) for n in range(1, 6)])
        pool.close()
        pool.join()
"""
    )
    worker.succeed()
    gateway.wait_for("my_app_steps", 105)
    gateway.wait_for("my_app_features", 15, feat="user_id")
    gateway.wait_for("my_app_sizes_count", 5)
    gateway.wait_for("my_app_level", 5)


def test_what_is_counted_at_the_interpreters_end_arrives(job, gateway):
    job.agent()
    worker = job.python(
        """
import atexit
import sys
import threading
from persia_metrics import Counter
counter = Counter("my_app", "steps")
class Last:
    def __init__(self):
        self.inc = counter.inc
    def __del__(self):
        self.inc(100)
sys.last_of_all = Last()  # goes with the modules
atexit.register(counter.inc, 10)
threading.Thread(target=lambda: (threading.main_thread().join(), counter.inc())).start()
def generator():
    try:
        yield
    finally:
        counter.inc(1000)
suspended = generator()
next(suspended)
"""
    )
    worker.succeed()
    gateway.wait_for("my_app_steps", 1111)


# The interpreter ends while threads are below a native function. Each of them then ends where it waits for Python's global lock.
# What `sys` has goes after Python has begun to end.
ENDS_BELOW = """
import os, sys, threading, time
import persia_metrics
from persia_metrics import Counter, Gauge, Histogram, Phase, _native, events
begun = threading.Event()
read, write = os.pipe()
def wait():
    begun.set()
    os.read(read, 1)
    return "1"
class Waits:
    __str__ = lambda self: wait()
    __float__ = lambda self: float(wait())
    __index__ = lambda self: int(wait())
    __bool__ = lambda self: bool(wait())
    __call__ = lambda self: wait()
    __fspath__ = lambda self: wait()
    __iter__ = lambda self: iter(wait())
class WaitsAsText(str):
    __str__ = Waits.__str__
class WaitsAtLast(str):
    def __del__(self):
        wait()
class EndsLate:
    def __str__(self):
        return WaitsAtLast("text")
class Refuses(Exception):
    def __setattr__(self, name, value):
        wait()
counter, gauge = Counter("g", "counter"), Gauge("g", "gauge")
family = Gauge("g", "family", "", ["label"])
def work():
    STATEMENT
threads = [threading.Thread(target=work, daemon=True) for _ in range(THREADS)]
for thread in threads:
    thread.start()
assert begun.wait(30)
class Last:
    def __del__(self, ids=[str(thread.native_id) for thread in threads], listdir=os.listdir, write=os.write, pipe=write, sleep=time.sleep):
        write(pipe, b"x")
        while set(ids) & set(listdir("/proc/self/task")):
            sleep(0.001)
sys.last_of_all = Last()
"""

# What calls Python.
WAITS = {
    "inc": "counter.inc(Waits())",
    "set by keyword": "gauge.set(value=Waits())",
    "a native histogram's bounds": "_native.Histogram('g', 'h', '', '', (), (Waits(),))",
    "the period": "_native.set_callback_period(Waits())",
    "an event's type": "events.record(Waits(), 'checkpoint')",
    "an event's metadata": "_native.keep_event('checkpoint', 'my_app', {'of': Waits()}, 0)",
    "the end of an event's text": "_native.keep_event('checkpoint', 'my_app', {'of': EndsLate()}, 0)",
    "a label's value": "_native.remove_series('g', 'family', (('label', WaitsAsText('x')),))",
    "labels": "_native.read_value('g', 'family', Waits())",
    "a replica": "_native.init(None, None, Waits(), (), None, False)",
    "a directory": "_native.init(None, None, None, (), Waits(), False)",
    "a flag": "_native.init(None, None, None, (), None, Waits())",
    "an exception that leaves a phase": "Phase('data').__exit__(Refuses, Refuses(), None)",
}


@pytest.mark.parametrize("what", WAITS)
def test_the_interpreter_ends_while_a_native_function_calls_python(run_python, what):
    run_python(ENDS_BELOW.replace("STATEMENT", WAITS[what]).replace("THREADS", "1"))


# Native functions that release the interpreter's lock while they run.
GIVES_UP = {
    "clear": "family.labels('a').set(1); family.clear()",
    "remove": "_native.remove_series('g', 'counter', ())",
    "init": "_native.init(None, None, None, (), None, False)",
    "a gauge's function": "gauge.set_function(float)",
    "a counter's function": "counter.set_function(None)",
    "snapshot": "_native.read_values('no', 'such')",
    "the end of functions": "_native.end_functions()",
}


@pytest.mark.parametrize("what", GIVES_UP)
def test_the_interpreter_ends_while_native_functions_give_up_the_lock(run_python, what):
    run_python(ENDS_BELOW.replace("STATEMENT", f"begun.set()\n    while True: {GIVES_UP[what]}").replace("THREADS", "8"))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_the_processes_of_a_rank_have_its_number(job, method):
    """With a stand-in for torch.distributed: its process group gives the rank, as after torch.multiprocessing.spawn."""
    agent = job.agent()
    job.python(
        f"""
import multiprocessing, types
from persia_metrics import Counter
from persia_metrics.torch import ranks

def load():
    Counter("my_app", "loads").inc()

if __name__ == "__main__":
    c10d = types.SimpleNamespace(is_initialized=lambda: True, get_world_size=lambda: 8, get_rank=lambda: 5, init_process_group=print)
    ranks.take_rank(c10d)
    load()
    loader = multiprocessing.get_context({method!r}).Process(target=load)
    loader.start()
    loader.join()
    print("loaded")
    input()
"""
    ).wait_for("loaded")
    wait_until(lambda: agent.metrics().one("my_app_loads", instance="rep_5") == 2, "both counts of rank 5")
    assert agent.metrics().one("my_app_loads", instance="rep_0") is None


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("importer", ["parent", "child"])
def test_each_end_of_a_child_has_its_reason(job, method, importer):
    agent = job.agent()
    program = """
import multiprocessing, os, sys
IMPORT_IN_PARENT

def work(end):
    from persia_metrics import Counter
    Counter("my_app", "batches").inc()
    exec(end)

if __name__ == "__main__":
    context = multiprocessing.get_context(METHOD)
    ends = ["pass", "raise ValueError", "sys.exit(3)", "sys.exit()", "sys.exit('text')", "os._exit(7)", "os.kill(os.getpid(), 9)"]
    children = [context.Process(target=work, args=(end,)) for end in ends]
    for child in children:
        child.start()
    for child in children:
        child.join()
    input()
"""
    program = program.replace("METHOD", repr(method))
    job.python(program.replace("IMPORT_IN_PARENT", "import persia_metrics" if importer == "parent" else ""))

    def reasons():
        ends = Counter()
        for (name, labels), value in agent.metrics().items():
            if name == "persia_process_exits_total":
                # Of a child that the agent has seen alive, or that its parent has not reaped yet, the kernel tells how it ended.
                reason = dict(labels)["reason"]
                ends["unknown" if reason in ("SIGKILL", "exit_7") else reason] += value
        return ends

    wait_until(lambda: sum(reasons().values()) == 7, "the ends of the children")
    assert reasons() == {"exit_0": 2, "exit_1": 2, "exit_3": 1, "unknown": 2}
