"""What a process does, and for how long: also of one that is stopped, or that ended with its agent."""

import json
import os
import re
import signal
import time

from servers import fetch, wait_until

TRAINS = """
import time
from persia_metrics import phase, set_step
outside = 0
for step in range(3):
    set_step(step)
    with phase("data"):
        time.sleep(0.02)
    begun = time.monotonic()
    with phase("forward"), phase("sync"):
        inside = time.monotonic()
        time.sleep(0.02)
        inside = time.monotonic() - inside
    outside += time.monotonic() - begun - inside
print(f"at most {outside} s in forward.")
with phase("data"):
    print("waits")
    input()
input()
"""

DECORATED = """
import asyncio, time
from persia_metrics import Phase, phase, read_value, set_step

@phase("data")
def load(seconds):
    time.sleep(seconds)
    return seconds

@phase("sync")
async def gather(seconds):
    await asyncio.sleep(seconds)
    return seconds

@phase("data")
def batches(count):
    for number in range(count):
        time.sleep(0.02)
        yield number

assert load(0.05) == 0.05 and asyncio.run(gather(0.05)) == 0.05
data = phase("data").value()
assert 0.05 <= data < 5 and 0.05 <= phase("sync").value() < 5
for number in batches(3):
    time.sleep(1)  # outside of the generator
assert data + 0.06 <= phase("data").value() < data + 2.9, phase("data").value() - data
assert read_value("persia_phase", "duration_seconds", {"phase": "sync"}) == 1
try:
    with Phase("eval"):
        raise KeyError("in the phase")
except KeyError:
    pass
left = phase("eval").value()
time.sleep(0.05)
assert phase("eval").value() == left
set_step(2**40)
assert read_value("persia_phase", "step") == 2**40
for wrong in (lambda: phase(3), lambda: set_step("a")):
    try:
        wrong()
        raise SystemExit("no TypeError")
    except TypeError:
        pass
for wrong in (lambda: set_step(-1),):
    try:
        wrong()
        raise SystemExit("no OverflowError")
    except OverflowError:
        pass
"""


def seconds(shown, phase):
    return shown.one("persia_phase_seconds_total", phase=phase) or 0


def test_python_marks_phases(run_python):
    run_python(DECORATED)


def test_a_phase_is_copied_and_pickled_with_the_object_that_has_it(run_python):
    run_python(
        """
import copy, pickle
from persia_metrics import phase
class Trainer:
    def __init__(self):
        self.data = phase("data" * 20)  # longer than the name that an exception gets
trainer = Trainer()
for made in (copy.copy(trainer.data), copy.deepcopy(trainer).data, *(pickle.loads(pickle.dumps(trainer, n)).data for n in range(6))):
    before = trainer.data.value()
    with made:
        pass
    assert trainer.data.value() == made.value() > before
""",
        PERSIA_METRICS_ENABLED="1",
    )


def test_the_time_of_a_stopped_process_counts(job, gateway):
    agent = job.agent()
    worker = job.python(TRAINS)
    worker.wait_for("waits")
    os.kill(worker.pid, signal.SIGSTOP)
    wait_until(lambda: seconds(agent.metrics(), "data") > 2, "two seconds in data")
    shown = agent.metrics()
    before = {phase: seconds(shown, phase) for phase in ("forward", "sync", "other")}
    assert shown.one("persia_phase_step") == 2
    assert shown.one("persia_phase_duration_seconds_count", phase="data") == 3
    wait_until(lambda: seconds(agent.metrics(), "data") > 3, "three seconds in data")
    shown = agent.metrics()
    assert {phase: seconds(shown, phase) for phase in ("forward", "sync", "other")} == before
    assert before["sync"] >= 0.06
    assert before["forward"] <= float(re.search(r"at most (\S+) s in forward", worker.output())[1]) + 0.001
    shown = json.loads(fetch(f"{agent.url}/api/v1/status")[1])["workers"][0]
    assert (shown["phase"], shown["step"]) == ("data", 2) and shown["phase_since_ms"] < 1000 * (time.time() - 2)
    wait_until(lambda: seconds(gateway.metrics(), "data") > 3, "three seconds in data on the gateway")

    os.kill(worker.pid, signal.SIGCONT)
    worker.go()
    wait_until(lambda: seconds(agent.metrics(), "other") > before["other"] + 0.5, "time outside of all phases")
    at_end = seconds(agent.metrics(), "data")
    worker.succeed()
    wait_until(lambda: agent.metrics().one("persia_process_up", process="0") == 0, "the process's end")
    assert seconds(agent.metrics(), "data") == at_end


def test_no_time_is_lost_or_made_up_when_both_are_killed(job):
    agent = job.agent()
    began = time.monotonic()
    worker = job.python(TRAINS)
    worker.wait_for("waits")
    wait_until(lambda: seconds(agent.metrics(), "data") > 1, "a second in data")
    shown = seconds(agent.metrics(), "data")
    agent.kill()
    worker.kill()
    lived = time.monotonic() - began
    time.sleep(2)  # in which the process is dead
    agent = job.agent()
    wait_until(lambda: seconds(agent.metrics(), "data") > 0, "the time of the process that was killed")
    assert shown <= seconds(agent.metrics(), "data") < lived
