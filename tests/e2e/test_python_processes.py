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
