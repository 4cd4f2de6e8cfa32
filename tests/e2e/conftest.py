"""Fixtures of the end-to-end tests: real servers, the built programs, and a directory of segments for each test.

Everything listens on free ports of loopback. Every process is ended by its pid when the test is over, and its process group is
checked to be empty.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import levels
import needs
import order
import pytest
from prometheus_client.parser import text_string_to_metric_families

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples/demo"))

from servers import ROOT, Gateway, Process, Prometheus, fetch, free_port, wait_until  # noqa: E402
from tls import Authority

BUILD = Path(os.environ.get("PERSIA_BUILD_DIR", ROOT / "build/release"))
AGENT = BUILD / "agent/cli/persia-metrics-agent"
WORKER = BUILD / "tests/e2e/worker/e2e_worker"
PYTHON = "/usr/bin/python3"  # the interpreter that the package is built for
PYTHON_PACKAGE = BUILD / "lib/python"
EMBEDDING_JOB = BUILD / "examples/embedding_job/embedding_job"

# Under nohup, or behind a shell's `&`, the tests would hand an ignored signal down to the programs under test, and a shell cannot
# trap that.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_addoption = levels.add_option

# Variables of the tests' own environment that could influence the programs under test.
_FOREIGN = ("PERSIA_", "TORCHELASTIC_", "REPLICA_INDEX", "RANK", "LOCAL_", "OMPI_", "PMI", "MV2_", "SLURM_", "BENCHMARK_AI", "PYTHON")


def environment(**extra):
    """The environment without variables that the library or the agent reads, and with `extra`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    return {**clean, "PERSIA_METRICS_REPORT": "off", **extra}


class Samples(dict):
    """Samples of an exposition: value by (name, labels as a frozenset of pairs)."""

    def __init__(self, text):
        super().__init__()
        self.text = text
        names = {re.split("[{ ]", line, maxsplit=1)[0] for line in text.splitlines() if not line.startswith("#")}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                # prometheus_client adds `_total` to a counter that lacks it.
                name = sample.name if sample.name in names else sample.name.removesuffix("_total")
                self[name, frozenset(sample.labels.items())] = sample.value

    def one(self, name, **labels):
        """The value of the only sample with this name and labels, or None."""
        found = [value for (other, have), value in self.items() if other == name and labels.items() <= dict(have).items()]
        assert len(found) <= 1, f"{name}{labels}: {len(found)} samples"
        return found[0] if found else None


def agent_with_mount(directory, mount):
    """A program: the agent in its own mount namespace, after the shell command `mount`. A test that uses it needs "mounts"."""
    wrapper = directory / "agent.sh"
    wrapper.write_text(f"""#!/bin/sh\nexec unshare --mount sh -c '{mount} && exec "$@"' sh {AGENT} "$@"\n""")
    wrapper.chmod(0o755)
    return wrapper


class Agent(Process):
    """persia-metrics-agent, serving on `address`."""

    def __init__(self, command, log, env, address, program=AGENT, **options):
        super().__init__([program, *command], log, env=env, **options)
        self.address = address
        self.url = f"http://{address}"

    def metrics(self):
        if not self.running():
            raise RuntimeError(f"the agent ended with {self.popen.returncode}:\n{self.output()[-4000:]}")
        return Samples(fetch(self.url + "/metrics")[1])

    def await_collections(self, count):
        """Waits for this many further collections."""

        def made():
            return self.metrics().one("persia_agent_collect_duration_seconds_count") or 0

        enough = made() + count
        wait_until(lambda: made() >= enough, f"{count} further collections")


class Worker(Process):
    """The worker of worker/worker.cc. It, or the agent that runs it, reads commands from our pipe."""

    def tell(self, line):
        """Sends a command, and waits until it is done."""
        before = self.output().count(f"done {line}\n")
        self.popen.stdin.write(line + "\n")
        self.popen.stdin.flush()
        wait_until(lambda: self.output().count(f"done {line}\n") > before, f"the worker's answer to {line!r}")

    def leave(self):
        """Closes its input, which ends it. Returns the exit code."""
        self.popen.stdin.close()
        return self.wait()


class PythonWorker(Process):
    """A program in Python that imports persia_metrics. It may wait for `go()` or `succeed()` by reading a line."""

    def wait_for(self, word):
        """Waits until it has printed the word; fails immediately if it has ended without it."""

        def seen():
            if word in self.output():
                return True
            if not self.running():
                raise RuntimeError(f"it ended with {self.popen.returncode}:\n{self.output()[-4000:]}")
            return False

        wait_until(seen, f"the worker to print {word!r}")

    def go(self):
        self.popen.stdin.write("go\n")
        self.popen.stdin.flush()

    def succeed(self):
        """Lets it run to its end, and returns its output."""
        with contextlib.suppress(BrokenPipeError):  # it has ended
            self.go()
        with contextlib.suppress(BrokenPipeError):
            self.popen.stdin.close()
        code = self.wait()
        assert code == 0, f"it ended with {code}:\n{self.output()[-4000:]}"
        return self.output()


class WorkerUnderAgent(Agent, Worker):
    """An agent in exec mode and the worker that it runs."""


@pytest.fixture
def run_python(tmp_path):
    """Runs a Python program, with metrics disabled unless `env` enables them, and returns its output."""

    def run(source, code=0, **env):
        script = tmp_path / "program.py"
        script.write_text(source)
        result = subprocess.run(
            [PYTHON, script],
            env=environment(**{"PYTHONPATH": str(PYTHON_PACKAGE), **env}),
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="surrogateescape",  # paths may be any bytes
            timeout=180,
        )
        assert result.returncode == code, result.stdout
        return result.stdout

    return run


@pytest.fixture
def started():
    """Registers a process. After the test it is stopped, and no process of its group may be left."""
    processes = []
    yield processes.append
    left = []
    for process in reversed(processes):
        process.stop()
        left += process.group_members()
    assert not left, f"processes left behind: {left}"


@pytest.fixture
def segments():
    """A directory for a job's segments, on the tmpfs that jobs use."""
    directory = tempfile.mkdtemp(prefix="persia-e2e-", dir="/dev/shm")
    yield Path(directory)
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def public_folder():
    """A folder that every user can reach, with both of the agent's programs."""
    folder = Path(tempfile.mkdtemp(prefix="persia-e2e-", dir="/tmp"))
    folder.chmod(0o755)
    for name in ("persia-metrics-agent", "persia-metrics-agentd"):
        shutil.copy(AGENT.with_name(name), folder)
    yield folder
    shutil.rmtree(folder)


class GatewayHandle:
    """A real PushGateway that can be killed and restarted on its port."""

    def __init__(self, directory):
        self._directory = directory
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.start()

    def start(self):
        self.server = Gateway(self._directory, self.port)

    def kill(self):
        self.server.kill()

    def metrics(self):
        return Samples(self.server.metrics())

    def groups(self):
        return self.server.groups()

    def wait_for(self, name, value, seconds=60, **labels):
        """Waits until the only sample with this name and labels has this value."""

        def seen():
            have = self.metrics().one(name, **labels)
            if have != value:
                raise ValueError(f"{name} is {have!r}, not {value!r}")
            return True

        wait_until(seen, f"{name}{labels} on the gateway", seconds)


@pytest.fixture
def gateway(tmp_path):
    handle = GatewayHandle(tmp_path)
    yield handle
    handle.server.stop()


@pytest.fixture
def prometheus(tmp_path, started):
    """Starts a Prometheus that scrapes the given target every second."""

    def start(target, **options):
        directory = Path(tempfile.mkdtemp(dir=tmp_path))
        server = Prometheus(directory, target, **options)
        started(server)
        return server

    return start


class Job:
    """One training job: starts its agents and workers with the same name, directory and gateway.

    Without a gateway, its agents push nothing. Without a directory, it uses the default one.
    """

    def __init__(self, tmp_path, segments, gateway, started):
        self.name = "job_under_test"
        self.agent_program, self.worker_program = AGENT, WORKER
        self.directory, self.segments, self._gateway, self._started = tmp_path, segments, gateway, started
        self._count = 0

    def _log(self, kind):
        self._count += 1
        return self.directory / f"{kind}-{self._count}.log"

    def flags(self, address, more):
        """The flags of each agent of the job; `more` overrides them."""
        usual = {
            "--job": self.name,
            "--gateway": self._gateway.address if self._gateway else "off",
            "--metrics-dir": self.segments,
            "--listen": address,
            "--push-interval": "0.2",
        }
        told = {flag.split("=")[0] for flag in more}
        return [f"{flag}={value}" for flag, value in usual.items() if flag not in told and value is not None] + list(more)

    def agent(self, *flags, program=None):
        """An agent beside the job."""
        address = f"127.0.0.1:{free_port()}"
        agent = Agent(["run", *self.flags(address, flags)], self._log("agent"), environment(), address, program or self.agent_program)
        self._started(agent)
        return agent

    def worker(self, role="trainer", replica=0, program=None, env=None):
        """A worker that an agent did not start."""
        who = {"PERSIA_JOB_NAME": self.name, "PERSIA_ROLE": role, "REPLICA_INDEX": str(replica)}
        where = {"PERSIA_METRICS_DIR": str(self.segments)} if self.segments else {}
        env = environment(**who, **where, **(env or {}))
        worker = Worker([program or self.worker_program], self._log("worker"), env=env, stdin=subprocess.PIPE)
        self._started(worker)
        return worker

    def python(self, source, **env):
        """A Python program that an agent did not start. Its text is written to a file, because spawned processes read it again."""
        script = self.directory / f"worker_{self._count}.py"
        script.write_text(source)
        who = {"PERSIA_METRICS_DIR": str(self.segments), "PERSIA_JOB_NAME": self.name, "PERSIA_ROLE": "trainer"}
        env = environment(**{"PYTHONPATH": str(PYTHON_PACKAGE), "PYTHONUNBUFFERED": "1", **who, **env})
        worker = PythonWorker([PYTHON, script], self._log("python"), env=env, stdin=subprocess.PIPE)
        self._started(worker)
        return worker

    def exec(self, *command, flags=(), env=None):
        """Any command under an agent in exec mode."""
        address = f"127.0.0.1:{free_port()}"
        command = ["exec", *self.flags(address, flags), "--", *command]
        agent = Agent(command, self._log("exec"), environment(**(env or {})), address)
        self._started(agent)
        return agent

    def exec_worker(self, *flags, env=None, program=None, worker=None):
        """A worker under an agent in exec mode."""
        address = f"127.0.0.1:{free_port()}"
        agent = WorkerUnderAgent(
            ["exec", *self.flags(address, flags), "--", worker or self.worker_program],
            self._log("exec"),
            environment(PERSIA_ROLE="trainer", **(env or {})),
            address,
            program or self.agent_program,
            stdin=subprocess.PIPE,
        )
        self._started(agent)
        return agent


@pytest.fixture
def job(tmp_path, segments, gateway, started):
    return Job(tmp_path, segments, gateway, started)


@pytest.fixture
def lone_job(tmp_path, segments, started):
    """A job without a gateway."""
    return Job(tmp_path, segments, None, started)


@pytest.fixture
def authority(tmp_path):
    """A certificate authority of this test."""
    directory = tmp_path / "authority"
    directory.mkdir()
    return Authority(directory)


@pytest.fixture(scope="session")
def built_wheel(tmp_path_factory):
    """The wheel, which all workers of xdist share."""
    from wheel import Wheel

    own = tmp_path_factory.getbasetemp()
    return Wheel(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own)


@pytest.fixture
def receivers():
    """Creates remote write receivers, which do not listen yet."""
    from remote_write_receiver import Receiver  # protoc runs for it

    made = []

    def make(**options):
        made.append(Receiver(free_port(), **options))
        return made[-1]

    yield make
    for receiver in made:
        receiver.stop()


@pytest.fixture
def receiver(receivers):
    return receivers().start()


@pytest.fixture(scope="module")
def browser_of_module(tmp_path_factory):
    """A browser that starts with the module's first tab."""
    from browser import Browser  # imports selenium, which few modules need

    browser = Browser(tmp_path_factory.mktemp("browser") / "driver.log")
    yield browser
    browser.stop()


@pytest.fixture
def browse(browser_of_module):
    """Opens an agent's page in a new tab, without data of earlier tests."""
    browser_of_module.new_tab()  # the browser starts before the test does

    def start(agent_url, width=1400, height=2000, scheme="light"):
        browser_of_module.new_tab(width, height, scheme)
        browser_of_module.open(agent_url)
        browser_of_module.wait_for("return document.querySelectorAll('.card').length > 0", "the first chart")
        return browser_of_module

    yield start
    browser_of_module.leave()


def pytest_configure(config):
    config.option.strict_markers = True
    import gpu_host  # which imports this module

    for plugin in (gpu_host, levels, needs, order):
        config.pluginmanager.register(plugin)
