"""persia_metrics.benchmarkai.emit in the modes of Benchmark AI's document: stdout and fifo."""

import json
import os
import re
import select
import subprocess
import threading

import pytest
from conftest import PYTHON, PYTHON_PACKAGE, environment
from needs import in_namespaces
from servers import wait_until

DOCUMENT = """
from persia_metrics.benchmarkai import emit

def execute_training():
    pass

def my_fancy_benchmark():
    import time
    begin = time.time()
    for epoch in range(100):
        execute_training()
    elapsed_time = time.time() - begin
    emit({"alexnet.batchsize16.latency": elapsed_time})

my_fancy_benchmark()
"""

WRONG = """
from persia_metrics.benchmarkai import emit
for wrong in ([1, 2], "string", None, {"set"}, 1, 1.5, {}, {"a": object()}):
    try:
        emit(wrong)
    except Exception as error:
        print(type(error).__name__)
"""
ERRORS = ["TypeError"] * 6 + ["ValueError", "TypeError"]


@pytest.fixture
def fifo(tmp_path):
    """A named pipe that is read, as by a daemon, until the test ends; `lines()` is the input."""

    class Fifo:
        def __init__(self):
            self.path = tmp_path / "fifo"
            self.text = ""
            self.env = {"BENCHMARK_AI": "fifo", "BENCHMARK_AI_FIFO_FILEPATH": str(self.path)}
            self._stop, self._wake = os.pipe()
            self._thread = None

        def serve(self):
            """Creates the pipe and reads it. Opened for reading and writing, because otherwise the last writer's close would end it."""
            if not self.path.exists():
                os.mkfifo(self.path)
            self._end = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)
            self._thread = threading.Thread(target=self._read, args=(self._end,))
            self._thread.start()

        def _read(self, end):
            while self._stop not in select.select([end, self._stop], [], [])[0]:
                self.text += os.read(end, 65536).decode()

        def lines(self):
            return self.text.splitlines()

        def leave(self):
            if self._thread:
                os.write(self._wake, b"x")
                self._thread.join()
                os.read(self._stop, 1)
                os.close(self._end)
                self._thread = None

    fifo = Fifo()
    yield fifo
    fifo.leave()


@pytest.mark.parametrize("env", [{}, {"BENCHMARK_AI": "STDOUT"}])
def test_document_stdout(run_python, env):
    assert re.fullmatch(r'{"alexnet.batchsize16.latency": [\d.e-]+}\n', run_python(DOCUMENT, **env))


def test_lines_are_pythons_json(run_python, fifo):
    fifo.serve()
    program = """
from types import MappingProxyType
from persia_metrics.benchmarkai import emit
emit({"nan": float("nan"), "inf": float("inf"), "minus": -float("inf")})
emit({"s\\u00f6": 1, "b": 0.1})
emit(MappingProxyType({"proxy": True}))
"""
    expected = ['{"nan": NaN, "inf": Infinity, "minus": -Infinity}', '{"s\\u00f6": 1, "b": 0.1}', '{"proxy": true}']
    assert run_python(program).splitlines() == expected
    run_python(program, **fifo.env)
    wait_until(lambda: len(fifo.lines()) >= 3, "three lines")
    assert fifo.lines() == expected


def test_wrong_arguments(run_python, fifo):
    fifo.serve()
    assert run_python(WRONG).split() == ERRORS
    assert run_python(WRONG, **fifo.env).split() == ERRORS
    assert run_python(WRONG, BENCHMARK_AI="segment").split() == ERRORS
    assert fifo.text == ""


def test_unknown_mode_is_refused_when_imported(run_python):
    told = run_python("import persia_metrics.benchmarkai", 1, BENCHMARK_AI="fifi")
    assert "ValueError: BENCHMARK_AI must be stdout, fifo or segment, not 'fifi'" in told


def test_variables_that_say_nothing_are_as_not_set(run_python, fifo):
    fifo.serve()
    program = "from persia_metrics.benchmarkai import emit\nemit({'a': 1})\n"
    assert run_python(program, BENCHMARK_AI="") == '{"a": 1}\n'
    for number in ("", "soon", "-1", "nan", "inf", "1e300"):
        waits = {"BENCHMARK_AI_FIFO_MAX_WAIT_TIME": number, "BENCHMARK_AI_FIFO_WAIT_TIME_STEP": number}
        assert run_python(program, **fifo.env, **waits) == ""
    wait_until(lambda: len(fifo.lines()) == 6, "the lines")


DEFAULT_PATHS = """
import os
from persia_metrics.benchmarkai import FifoNotCreatedInTimeError, emit
PATH, OLDER = "/tmp/benchmark-ai/fifo", "/tmp/benchmark-ai-fifo"
os.mkdir("/tmp/benchmark-ai")

def emitted(read=(), unread=()):
    for path in (*read, *unread):
        os.mkfifo(path)
    readers = {path: os.open(path, os.O_RDONLY | os.O_NONBLOCK) for path in read}
    child = os.fork()
    if child == 0:
        try:
            emit({"a": 1})
            print(*(path for path, reader in readers.items() if os.read(reader, 100) == b'{"a": 1}\\n'), flush=True)
        except FifoNotCreatedInTimeError as error:
            print(error, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    for path in (*read, *unread):
        os.unlink(path)

emitted([PATH])
emitted([OLDER])
emitted([PATH, OLDER])
emitted([OLDER], unread=[PATH])
emitted(unread=[OLDER])
open(OLDER, "w").write("precious")
emitted()
print(open(OLDER).read())
"""


@pytest.mark.needs("namespaces")
def test_the_default_path_is_benchmark_ais_or_the_older_one_if_a_reader_is_there():
    # The package is in a folder that the new /tmp does not hide.
    mounts = 'mount --bind "$0" /mnt && mount -t tmpfs tmpfs /tmp && exec "$@"'
    command = in_namespaces("sh", "-c", mounts, PYTHON_PACKAGE, PYTHON, "-c", DEFAULT_PATHS)
    nothing = {"BENCHMARK_AI_FIFO_FILEPATH": "", "BENCHMARK_AI_FIFO_WAIT_TIME_STEP": ""}
    env = environment(PYTHONPATH="/mnt", BENCHMARK_AI="fifo", BENCHMARK_AI_FIFO_MAX_WAIT_TIME="0.2", **nothing)
    done = subprocess.run(command, env=env, cwd="/", capture_output=True, text=True, timeout=60, check=False)
    path, older = "/tmp/benchmark-ai/fifo", "/tmp/benchmark-ai-fifo"
    assert done.stdout.splitlines() == [
        *(path, older, path, older),
        f"{older} had no reader within 0.2 s (BENCHMARK_AI_FIFO_MAX_WAIT_TIME)",
        f"{path} did not appear within 0.2 s (BENCHMARK_AI_FIFO_MAX_WAIT_TIME); the agent makes it if started with --fifo",
        "precious",
    ], done.stderr


def test_mode_is_read_once(run_python):
    program = 'import os\nfrom persia_metrics.benchmarkai import emit\nos.environ["BENCHMARK_AI"] = "fifo"\nemit({"a": 1})\n'
    assert run_python(program) == '{"a": 1}\n'


def test_large_maps_are_split_into_lines_that_a_pipe_takes_whole(run_python, fifo):
    fifo.serve()
    program = """
from persia_metrics.benchmarkai import emit
emit({f"metric.number.{i}": i for i in range(2000)})
emit({"x" * 4080: 1})
try:
    emit({"small": 1, "x" * 5000: 1})
except ValueError as error:
    print("ValueError")
"""
    assert run_python(program, **fifo.env) == "ValueError\n"
    wait_until(lambda: '{"small": 1}' in fifo.lines(), "the last line")
    lines = fifo.lines()
    assert all(len(line) + 1 <= select.PIPE_BUF for line in lines)
    together = {}
    assert json.loads(lines[-2]) == {"x" * 4080: 1}
    for line in lines[:-2]:
        together.update(json.loads(line))
    assert together == {f"metric.number.{i}": i for i in range(2000)}
    assert json.loads(lines[-1]) == {"small": 1}  # the other values of the refused name's map


def test_lines_of_many_writers_do_not_mix(run_python, fifo):
    fifo.serve()
    run_python(
        """
import os
import threading
from persia_metrics.benchmarkai import emit
def work(n):
    for i in range(200):
        emit({f"writer.{n}.{'x' * (i % 40) * 50}": i})
emit({"first": 0})  # children share the pipe that their parent opened
children = []
for n in range(3):
    pid = os.fork()
    if pid == 0:
        threads = [threading.Thread(target=work, args=(n,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        os._exit(0)
    children.append(pid)
for pid in children:
    assert os.waitpid(pid, 0)[1] == 0
""",
        **fifo.env,
    )
    wait_until(lambda: len(fifo.lines()) >= 1201, "all lines")
    assert len(fifo.lines()) == 1201
    assert all(len(json.loads(line)) == 1 for line in fifo.lines())


def test_first_emit_waits_for_the_pipe(tmp_path, fifo):
    program = tmp_path / "program.py"
    program.write_text("from persia_metrics.benchmarkai import emit\nprint('ready', flush=True)\nemit({'a': 1})\nprint('done')\n")
    env = environment(PYTHONPATH=str(PYTHON_PACKAGE), BENCHMARK_AI_FIFO_WAIT_TIME_STEP="0.02", **fifo.env)
    process = subprocess.Popen([PYTHON, program], env=env, stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout.readline() == "ready\n"
        assert process.poll() is None
        fifo.serve()
        assert process.stdout.readline() == "done\n"
    wait_until(lambda: fifo.text == '{"a": 1}\n', "the line")


TOO_LATE = """
import time
from persia_metrics.benchmarkai import FifoNotCreatedInTimeError, emit
begin = time.monotonic()
try:
    emit({"a": 1})
except FifoNotCreatedInTimeError as error:
    print(0.3 <= time.monotonic() - begin < 30, error)
"""


@pytest.mark.parametrize("there", [False, True], ids=["no_pipe", "no_reader"])
def test_pipe_that_does_not_come_in_time(run_python, fifo, there):
    if there:
        os.mkfifo(fifo.path)
    waits = {"BENCHMARK_AI_FIFO_MAX_WAIT_TIME": "0.3", "BENCHMARK_AI_FIFO_WAIT_TIME_STEP": "0.1"}
    told = run_python(TOO_LATE, **fifo.env, **waits)
    assert told.startswith(f"True {fifo.path} {'had no reader' if there else 'did not appear'} within 0.3 s")


def test_threads_wait_beside_each_other(run_python, fifo):
    told = run_python(
        """
import threading, time
from persia_metrics.benchmarkai import FifoNotCreatedInTimeError, emit
took = []
def work():
    begin = time.monotonic()
    try:
        emit({"a": 1})
    except FifoNotCreatedInTimeError:
        took.append(time.monotonic() - begin)
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(took), max(took) < 12)  # one after another, the last would take 16 s
""",
        **fifo.env,
        BENCHMARK_AI_FIFO_MAX_WAIT_TIME="2",
    )
    assert told == "8 True\n"


def test_a_signal_handler_emits_while_the_first_call_waits(run_python, fifo):
    told = run_python(
        """
import os, signal
from persia_metrics.benchmarkai import emit
path = os.environ["BENCHMARK_AI_FIFO_FILEPATH"]
def handler(number, frame):
    global reader
    os.mkfifo(path)
    reader = os.open(path, os.O_RDWR)
    emit({"nested": 1})
signal.signal(signal.SIGALRM, handler)
before = len(os.listdir("/proc/self/fd"))
signal.setitimer(signal.ITIMER_REAL, 0.2)
emit({"first": 1})
print(os.read(reader, 1000).decode(), len(os.listdir("/proc/self/fd")) - before)
""",
        **fifo.env,
    )
    assert told == '{"nested": 1}\n{"first": 1}\n 2\n'


@pytest.mark.parametrize("full", [False, True], ids=["no_pipe", "full_pipe"])
def test_a_signal_handler_that_raises_ends_the_wait(run_python, fifo, full):
    told = run_python(
        """
import os, signal
from persia_metrics.benchmarkai import emit
if FULL:
    path = os.environ["BENCHMARK_AI_FIFO_FILEPATH"]
    os.mkfifo(path)
    reader = os.open(path, os.O_RDWR | os.O_NONBLOCK)
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.2)
try:
    while True:
        emit({"a" * 4000: 1})
except KeyboardInterrupt:
    print("ended")
""".replace("FULL", str(full)),
        **fifo.env,
        BENCHMARK_AI_FIFO_MAX_WAIT_TIME="3600",
        BENCHMARK_AI_FIFO_WAIT_TIME_STEP="3600",
    )
    assert told == "ended\n"


@pytest.mark.needs("other-users")
def test_another_users_pipe_is_refused_unless_its_group_is_named(run_python, fifo):
    fifo.serve()
    os.chown(fifo.path, 47111, 47112)
    program = "from persia_metrics.benchmarkai import emit\nemit({'a': 1})\n"
    told = run_python(program, 1, **fifo.env)
    assert "PermissionError: [Errno 1] belongs to another user (47111, group 47112); set BENCHMARK_AI_FIFO_FILEPATH" in told
    assert fifo.text == ""
    run_python(program, PERSIA_METRICS_DIR_GROUP="47112", **fifo.env)
    wait_until(lambda: fifo.lines() == ['{"a": 1}'], "the line")


def test_what_is_no_pipe_is_refused_and_left_alone(run_python, fifo):
    fifo.path.write_text("precious")
    told = run_python("from persia_metrics.benchmarkai import emit\nemit({'a': 1})\n", 1, **fifo.env)
    assert "is not a named pipe; set BENCHMARK_AI_FIFO_FILEPATH to a pipe of this user" in told and str(fifo.path) in told
    assert fifo.path.read_text() == "precious"


def test_names_without_end_are_not_all_kept(run_python):
    told = run_python(
        """
from persia_metrics.benchmarkai import emit
from persia_metrics.torchelastic.metrics import ExportingMetricHandler
handler = ExportingMetricHandler()
for i in range(25_000):
    emit({f"metric.{i}": i})
    handler.add("g", f"metric.{i}", i)
    handler.add("g", f"bad.{i % 2000}", None)
print(len(emit.__self__._adders) <= 10_000, len(handler._adders) <= 10_000, len(handler._warned))
""",
        BENCHMARK_AI="segment",
        PERSIA_METRICS_ENABLED="0",
    )
    assert told.splitlines()[-1] == "True True 1000"
    assert told.count("dropped a value of") == 1000


def test_reader_that_comes_back_gets_what_is_emitted_then(tmp_path, fifo):
    program = tmp_path / "program.py"
    program.write_text(
        """
from persia_metrics.benchmarkai import emit
while True:
    try:
        emit({input(): 1})
        print("taken", flush=True)
    except BrokenPipeError:
        print("nobody", flush=True)
    except EOFError:
        break
"""
    )
    env = environment(PYTHONPATH=str(PYTHON_PACKAGE), **fifo.env)
    fifo.serve()
    with subprocess.Popen([PYTHON, program], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def say(word):
            process.stdin.write(word + "\n")
            process.stdin.flush()
            return process.stdout.readline()

        assert say("before") == "taken\n"
        wait_until(lambda: len(fifo.lines()) == 1, "the first line")
        fifo.leave()
        assert say("lost") == "nobody\n"
        os.unlink(fifo.path)  # the daemon creates a new one
        assert say("lost too") == "nobody\n"
        fifo.serve()
        assert say("after") == "taken\n"
        process.stdin.close()
    wait_until(lambda: len(fifo.lines()) == 2, "the second line")
    assert [list(json.loads(line)) for line in fifo.lines()] == [["before"], ["after"]]
