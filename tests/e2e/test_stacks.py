"""The stacks of a process that crashes or hangs, if it opted in by PERSIA_METRICS_STACKS=1."""

import json
import signal
import time

from servers import fetch, wait_until

CRASHES = """
import faulthandler, os, signal, sys
from persia_metrics import Counter
Counter("my_app", "steps").inc()
def load():
    {act}
print("ready", flush=True)
sys.stdin.readline()
load()
"""

HANGS = """
import os, sys, threading, time
from persia_metrics import Counter
steps = Counter("my_app", "steps")
def wait_for_the_others():
    time.sleep(60)
for _ in range(50):
    steps.inc()
    time.sleep(0.1)
threading.Thread(target=wait_for_the_others, daemon=True).start()
def read_a_row():
    time.sleep(60)
read_a_row()
"""

ON = {"PERSIA_METRICS_STACKS": "1"}


def deaths(agent):
    return json.loads(fetch(agent.url + "/api/v1/status")[1])["deaths"]


def stacks_events(agent):
    events = json.loads(fetch(agent.url + "/api/v1/events?type=persia.agent&limit=100")[1])["events"]
    return [event for event in events if event["name"] == "worker_stacks"]


def test_a_crash_leaves_the_stacks(job, segments):
    agent = job.agent()
    worker = job.python(CRASHES.format(act="faulthandler._sigsegv()"), **ON)
    worker.wait_for("ready")
    (file,) = segments.glob("*.stacks")
    assert file.read_text().startswith("persia-metrics stacks 1 signal ")
    worker.go()
    wait_until(lambda: len(deaths(agent)) == 1, "the death")
    (death,) = deaths(agent)
    assert "in load" in death["stacks"]
    wait_until(lambda: not file.exists(), "the file to be removed")


def test_without_the_variable_there_is_neither_a_file_nor_a_handler(job, segments):
    agent = job.agent()
    worker = job.python(CRASHES.format(act="os.abort()"))
    worker.wait_for("ready")
    assert list(segments.glob("*.stacks")) == []
    worker.go()
    wait_until(lambda: len(deaths(agent)) == 1, "the death")
    assert deaths(agent)[0]["stacks"] == ""


def test_an_exit_removes_the_file(job, segments):
    job.agent()
    worker = job.python(CRASHES.format(act="pass"), **ON)
    worker.wait_for("ready")
    worker.go()
    assert worker.wait() == 0
    assert list(segments.glob("*.stacks")) == []


def test_a_rank_that_hangs_is_asked_once(job):
    agent = job.agent("--hang-after=1")
    worker = job.python(HANGS, **ON)
    wait_until(lambda: stacks_events(agent), "the stacks")
    (event,) = stacks_events(agent)
    assert "in read_a_row" in event["metadata"]["stacks"] and "in wait_for_the_others" in event["metadata"]["stacks"]
    agent.await_collections(4)
    assert len(stacks_events(agent)) == 1
    assert worker.running(), "the signal does it no harm"
    worker.signal(signal.SIGKILL)
    wait_until(lambda: len(deaths(agent)) == 1, "the death")
    assert "in read_a_row" in deaths(agent)[0]["stacks"]


def test_a_rank_that_hangs_without_the_variable_gets_no_signal(job):
    agent = job.agent("--hang-after=1")
    worker = job.python(HANGS)
    wait_until(lambda: agent.metrics().one("persia_job_hung") == 1, "the hang")
    hung = time.monotonic()
    wait_until(lambda: time.monotonic() > hung + 1, "some collections")
    assert worker.running()
    assert stacks_events(agent) == []


def test_a_program_with_its_own_faulthandler_keeps_it(job, segments):
    job.agent()
    worker = job.python("import faulthandler\nfaulthandler.enable()\n" + CRASHES.format(act="pass"), **ON)
    worker.wait_for("ready")
    assert list(segments.glob("*.stacks")) == []
    worker.go()
    assert worker.wait() == 0


FORKS = """
import os, sys
from persia_metrics import Counter
Counter("my_app", "steps").inc()
if os.fork() == 0:
    Counter("my_app", "steps").inc()
    print("child", flush=True)
    os.read(0, 1)
    os._exit(0)
os.wait()
"""


def test_a_forked_child_has_a_file_of_its_own(job, segments):
    job.agent()
    worker = job.python(FORKS, **ON)
    worker.wait_for("child")
    assert len({path.name.split("-")[0] for path in segments.glob("*.stacks")}) == 2
    worker.go()
    assert worker.wait() == 0


CHILDREN = """
import multiprocessing, os, sys
from persia_metrics import Counter
Counter("my_app", "steps").inc()
context = multiprocessing.get_context("fork")
for _ in range(3):
    child = context.Process(target=int)
    child.start()
    child.join()
if os.fork() == 0:
    os._exit(0)
os.wait()
print("ready", flush=True)
sys.stdin.readline()
"""


def test_children_without_metrics_leave_no_file(job, segments):
    worker = job.python(CHILDREN, **ON)
    worker.wait_for("ready")
    own = f"{worker.popen.pid}-"
    (left,) = [path for path in segments.glob("*.stacks") if not path.name.startswith(own)]
    # That of the child that ended by os._exit, which runs no finalizer.
    job.agent()
    wait_until(lambda: not left.exists(), "the agent to remove it")
    assert [path.name.startswith(own) for path in segments.glob("*.stacks")] == [True]
    worker.go()
    assert worker.wait() == 0


EXECUTES = """
import os, sys
from persia_metrics import Counter
Counter("my_app", "steps").inc()
if sys.argv[1:] == []:
    os.execv(sys.executable, [sys.executable, sys.argv[0], "again"])
print("ready", flush=True)
sys.stdin.readline()
os.abort()
"""


def test_a_process_that_executes_another_program_has_a_file_again(job, segments):
    worker = job.python(EXECUTES, **ON)
    worker.wait_for("ready")
    assert "no stacks" not in worker.output()
    (file,) = segments.glob("*.stacks")
    assert file.read_text().startswith("persia-metrics stacks 1 signal ")


OWN_HANDLER = """
import os
from persia_metrics import Counter
import faulthandler
Counter("my_app", "steps").inc()
faulthandler.enable()
def crash_in_the_child():
    faulthandler._sigsegv()
if os.fork() == 0:
    crash_in_the_child()
os.wait()
"""


def test_a_forked_child_keeps_the_programs_own_faulthandler(job):
    job.agent()
    worker = job.python(OWN_HANDLER, **ON)
    assert worker.wait() == 0
    assert "in crash_in_the_child" in worker.output()


CLOSES_ALL = """
import os
from persia_metrics import Counter
Counter("my_app", "steps").inc()
from persia_metrics import stacks
os.close(stacks._file)
own = os.open(os.environ["OWN_FILE"], os.O_RDWR | os.O_CREAT)
os.dup2(own, stacks._file)  # the program's file has the number
if os.fork() == 0:
    os.write(stacks._file, b"of the program")
    os._exit(0)
os.wait()
"""


def test_a_forked_child_leaves_a_file_of_the_program_with_the_descriptors_number(job, tmp_path):
    job.agent()
    worker = job.python(CLOSES_ALL, OWN_FILE=str(tmp_path / "own"), **ON)
    assert worker.wait() == 0
    assert (tmp_path / "own").read_text() == "of the program"


HANGS_TWICE = """
import faulthandler, sys, threading, time
from persia_metrics import Counter
steps = Counter("my_app", "steps")
def work():
    for _ in range(50):
        steps.inc()
        time.sleep(0.1)
def hang_first():
    sys.stdin.readline()
def hang_again():
    sys.stdin.readline()
work()
hang_first()
work()
hang_again()
def crash_at_last():
    faulthandler._sigsegv()
crash_at_last()
"""


def test_each_hang_and_the_death_have_their_own_stacks(job):
    agent = job.agent("--hang-after=1")
    worker = job.python(HANGS_TWICE, **ON)
    wait_until(lambda: len(stacks_events(agent)) == 1, "the stacks of the first hang")
    worker.go()
    wait_until(lambda: len(stacks_events(agent)) == 2, "the stacks of the second hang")
    worker.go()
    wait_until(lambda: len(deaths(agent)) == 1, "the death")
    texts = [event["metadata"]["stacks"] for event in stacks_events(agent)] + [deaths(agent)[0]["stacks"]]
    assert len([text for text in texts if "in hang_first" in text]) == 1
    assert len([text for text in texts if "in hang_again" in text]) == 1
    assert "in crash_at_last" in texts[2] and "in hang_again" not in texts[2]
