"""The record of an exception that ends a Python process, and the hooks of the program, which stay."""

import json
import signal
import time

import pytest
from servers import fetch, wait_until

START = """
import os, sys
import persia_metrics
persia_metrics.Counter("my_app", "steps").inc()
"""


def death(job, source, status=1):
    """The death of a program, and what it printed."""
    agent = job.agent()
    worker = job.python(START + source)
    assert worker.wait() == status
    wait_until(lambda: json.loads(fetch(agent.url + "/api/v1/status")[1])["deaths"], "the death")
    (found,) = json.loads(fetch(agent.url + "/api/v1/status")[1])["deaths"]
    return found, worker.output()


def test_the_traceback_is_printed_once_as_without_us(job):
    found, output = death(job, "def load():\n    raise ValueError('bad row')\nload()\n")
    assert "died: ValueError: bad row (worker_1.py:6 in load)" in found["text"]
    assert output.count("Traceback (most recent call last):") == 1 and output.endswith("ValueError: bad row\n")


def test_deaths_that_are_found_at_once_are_in_the_order_of_their_exceptions(job):
    last = job.python(START + "input()\nraise ConnectionError('peer closed')\n", REPLICA_INDEX="0")
    first = job.python(START + "raise ValueError('bad row')\n", REPLICA_INDEX="1")
    assert first.wait() == 1
    between = int(time.time() * 1000)
    last.go()
    assert last.wait() == 1
    agent = job.agent()
    wait_until(lambda: json.loads(fetch(agent.url + "/api/v1/status")[1])["deaths"], "the deaths")
    deaths = json.loads(fetch(agent.url + "/api/v1/status")[1])["deaths"]
    assert [death["instance"] for death in deaths] == ["rep_1", "rep_0"]
    assert deaths[0]["ended_ms"] <= between <= deaths[1]["ended_ms"]


def test_the_first_phase_that_it_left_is_told(job):
    source = """
with persia_metrics.phase("forward"):
    with persia_metrics.phase("data"):
        raise ValueError("bad row")
"""
    assert death(job, source)[0]["phase"] == "data"


def test_a_phase_that_another_exception_left_is_not_told(job):
    source = """
with persia_metrics.phase("forward"):
    try:
        with persia_metrics.phase("data"):
            raise ValueError("caught")
    except ValueError:
        pass
    raise ValueError("not caught")
"""
    assert death(job, source)[0]["phase"] == "forward"


def test_an_earlier_hook_is_called(job):
    hook = "sys.excepthook = lambda *error: print('their hook:', error[1])\nimport importlib\n"
    source = hook + "importlib.reload(sys.modules['persia_metrics.uncaught']).install()\nraise ValueError('bad row')\n"
    found, output = death(job, source)
    assert output == "their hook: bad row\n"
    assert found["cause"] == "exception"


@pytest.mark.parametrize(
    "error, words",
    [
        ("type('Odd', (Exception,), {'__str__': lambda self: 1 / 0})()", "died: Odd (worker_1.py:5 in <module>)"),
        ("ValueError('first\\nsecond')", "died: ValueError: first (worker_1.py:5 in <module>)"),
        ("RuntimeError('\\n' + '=' * 60 + '\\n  \\nexpected Half')", "died: RuntimeError: expected Half (worker_1.py:5 in <module>)"),
        ("RuntimeError('\\n\\n-- 7 --\\n8')", "died: RuntimeError: -- 7 -- (worker_1.py:5 in <module>)"),
        ("RuntimeError('\\u5931\\u8d25')", "died: RuntimeError: \u5931\u8d25 (worker_1.py:5 in <module>)"),
        ("ValueError('x' * 100000)", "xxx (worker_1.py:5 in <module>)"),
        ("ValueError('\\ud800 \\0')", "died: ValueError: "),
        ("json.JSONDecodeError('no', '{', 0)", "died: JSONDecodeError: no: line 1 column 1 (char 0) (worker_1.py:5 in <module>)"),
    ],
    ids=["no-str", "lines", "rule", "no-letter", "not-latin", "huge", "surrogate", "of-python"],
)
def test_any_exception_is_told(job, error, words):
    found, output = death(job, f"import json; raise {error}\n")
    assert words in found["text"], found["text"]
    assert "Traceback" in output


def test_an_abort_after_the_exception_is_not_the_reason(job):
    source = "import atexit\natexit.register(os.abort)\nraise ValueError('bad row')\n"
    found, _ = death(job, source, -signal.SIGABRT)
    assert found["cause"] == "exception"
    assert "died: ValueError: bad row (worker_1.py:7 in <module>), then " in found["text"]


CAUGHT = """
try:
    raise ConnectionError("no wandb")
except ConnectionError as error:
    saved = error
"""


@pytest.mark.parametrize(
    "call",
    [
        "try:\n    raise saved\nexcept ConnectionError:\n    sys.excepthook(*sys.exc_info())\n",
        "sys.excepthook(type(saved), saved, saved.__traceback__)\n",
        "import threading\nthread = threading.Thread(target=sys.excepthook, args=(type(saved), saved, None))\nthread.start()\nthread.join()\n",
    ],
    ids=["in-except", "later", "in-a-thread"],
)
def test_an_exception_that_the_program_only_prints_is_not_the_reason(job, call):
    found, output = death(job, CAUGHT + call + "sys.exit(3)\n", 3)
    assert found["cause"] == "exit_code"
    assert "died: exit code 3; its last exception, which did not end it, was ConnectionError: no wandb" in found["text"]
    assert "ConnectionError: no wandb" in output


@pytest.mark.parametrize("at_prompt", [True, False], ids=["at-the-prompt", "before-it"])
def test_an_exception_after_which_the_prompt_goes_on_is_not_the_reason(job, tmp_path, at_prompt):
    agent = job.agent()
    source = START + "print('runs', flush=True)\n" + ("" if at_prompt else "raise ValueError('bad row')\n")
    (tmp_path / "train.py").write_text(source)
    worker = job.python(f"import os, sys\nos.execv(sys.executable, [sys.executable, '-i', {str(tmp_path / 'train.py')!r}])\n")
    worker.wait_for("runs")
    lines = ["raise ValueError('bad row')"] if at_prompt else []
    for line in [*lines, "persia_metrics.Counter('my_app', 'later').inc()", "print('went', 'on')"]:
        worker.popen.stdin.write(line + "\n")
    worker.popen.stdin.flush()
    worker.wait_for("went on")
    worker.kill()
    wait_until(lambda: json.loads(fetch(agent.url + "/api/v1/status")[1])["deaths"], "the death")
    (found,) = json.loads(fetch(agent.url + "/api/v1/status")[1])["deaths"]
    assert found["cause"] != "exception"
    assert "its last exception, which did not end it, was ValueError: bad row" in found["text"]


def test_a_kind_of_memory_error_is_lack_of_memory(job):
    assert death(job, "class Exhausted(MemoryError):\n    pass\nraise Exhausted('9 TiB')\n")[0]["cause"] == "out_of_memory"


def test_an_interruption_is_no_exception(job):
    assert death(job, "raise KeyboardInterrupt\n", -signal.SIGINT)[0]["cause"] != "exception"
