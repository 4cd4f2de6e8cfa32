"""Starts and stops the programs around a training job: PushGateway, Prometheus, etcd, the agent.

Used by `./run demo` and by the end-to-end tests. Standard library only. Each process runs in its own session: a Ctrl-C in the
terminal reaches only this program, which then ends the others in order. If this program dies first, the kernel sends each
process SIGTERM. Not thread-safe. Start processes from the main thread, because the kernel watches the death of the starting thread.
"""

import contextlib
import ctypes
import http.client
import itertools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("PERSIA_BUILD_DIR", ROOT / "build/release"))
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def _claim_range():
    """The number of a range of ports that no other process of this machine has, and a socket that keeps it until this process ends."""
    for number in range(32):
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0persia-metrics-ports-{number}")
            return number, claim
        except OSError:
            claim.close()
    raise OSError("all 32 ranges of test ports are in use by other processes")


def _ports():
    """Ports below the kernel's ephemeral range, so that no outgoing connection takes one between our check and its use."""
    number, _claim = _claim_range()
    share = range(10_000 + number * 687, 10_000 + (number + 1) * 687)
    begin = random.randrange(len(share))
    yield from itertools.cycle([*share[begin:], *share[:begin]])


_next_port = _ports().__next__


def free_port():
    """A free port on loopback, which is not returned again soon."""
    while True:
        port = _next_port()
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def find_program(name):
    """The program's path: from PATH, else from build/tools."""
    path = os.environ.get("PATH", os.defpath) + os.pathsep + str(ROOT / "build/tools/usr/bin")
    found = shutil.which(name, path=path)
    if found is None:
        raise FileNotFoundError(f"program {name} not found; ./run deps installs it")
    return found


def find_built(name):
    """A program of the release build."""
    found = [path for path in BUILD.rglob(name) if path.is_file() and os.access(path, os.X_OK)]
    if not found:
        raise FileNotFoundError(f"{name} not found under {BUILD}; run ./run build")
    return found[0]


def wait_until(condition, what, seconds=60.0, interval=0.05):
    """Calls `condition` until its result is true, and returns the result.

    OSError, HTTPException and ValueError, from a server that is not ready, continue the wait; any other exception ends it. After
    `seconds` a TimeoutError has `what` and the last result.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            seen = condition()
            if seen:
                return seen
        except (OSError, http.client.HTTPException, ValueError) as error:
            seen = error
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:g} s; last seen: {seen!r}")
        time.sleep(interval)


def fetch(url, method="GET", timeout=10):
    """Status code and body as text."""
    request = urllib.request.Request(url, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def processes():
    """Of each process of the machine: its pid, and its state, parent and process group."""
    # An exact name below the pattern, such as `stat`, would be looked up by glob, and fail for a process that has just ended.
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            state, parent, group = (directory / "stat").read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue  # it has ended
        yield int(directory.name), (state, int(parent), int(group))


def _end_with_parent():
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Process:
    """A running program, the leader of its own process group. A context manager that stops it."""

    def __init__(self, command, log, env=None, cwd=None, show=False, stdin=subprocess.DEVNULL):
        """Starts the program. Its output goes to the file `log` or, with `show`, to the terminal. A pipe as `stdin` takes text."""
        self.name = Path(command[0]).name
        self.log = Path(log)
        output = None if show else open(self.log, "ab")
        try:
            self.popen = subprocess.Popen(
                [str(word) for word in command],
                stdin=stdin,
                text=True,
                stdout=output,
                stderr=None if show else subprocess.STDOUT,
                env=env,
                cwd=cwd,
                start_new_session=True,
                preexec_fn=_end_with_parent,
            )
        finally:
            if output is not None:
                output.close()
        self.pid = self.popen.pid

    def running(self):
        return self.popen.poll() is None

    def output(self):
        """Its output so far."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def signal(self, number):
        if self.running():
            self.popen.send_signal(number)

    def wait(self, seconds=60.0):
        """Waits for its exit code, negative for a signal as in subprocess."""
        try:
            return self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{self.name} (pid {self.pid}) still runs after {seconds:g} s:\n{self.output()[-4000:]}") from None

    def kill(self):
        """SIGKILL to the process alone, as the kernel's out-of-memory killer would."""
        self.signal(signal.SIGKILL)
        self.popen.wait()

    def group_members(self):
        """The live pids of its process group, without zombies."""
        return [pid for pid, (state, _, group) in processes() if group == self.pid and state not in "ZX"]

    def stop(self, seconds=10.0):
        """Sends SIGTERM, then SIGKILL to the rest of the group. Returns the exit code."""
        self.signal(signal.SIGTERM)
        try:
            self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
        if self.group_members():
            with contextlib.suppress(ProcessLookupError):  # the last one has just ended
                os.killpg(self.pid, signal.SIGKILL)
            wait_until(lambda: not self.group_members(), f"the end of process group {self.pid}", 10)
        if self.popen.stdin:
            with contextlib.suppress(BrokenPipeError):
                self.popen.stdin.close()
        return self.popen.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Server(Process):
    """An HTTP server on `address`, a host:port of loopback."""

    def __init__(self, command, log, address, ready_path):
        super().__init__(command, log)
        self.address = address
        self.url = f"http://{address}"
        try:
            wait_until(lambda: self._ready(ready_path), f"{self.name} on {address}")
        except Exception:
            self.stop()
            raise RuntimeError(f"{self.name} did not start:\n{self.output()[-2000:]}") from None

    def _ready(self, path):
        if not self.running():
            raise RuntimeError("it ended")
        return fetch(self.url + path, timeout=2)[0] == 200

    @staticmethod
    def assets(program, folder):
        """The flag that Debian's builds need to find their web pages, installed or unpacked. Other builds do not know the flag."""
        pages = Path(program).resolve().parent.parent / "share/prometheus" / folder
        return [f"--web.local-assets={pages}"] if pages.exists() else []


class Gateway(Server):
    """A real PushGateway without persistence."""

    def __init__(self, directory, port=None):
        program = find_program("prometheus-pushgateway")
        address = f"127.0.0.1:{port or free_port()}"
        command = [program, f"--web.listen-address={address}", "--persistence.file=", "--log.level=warn"]
        command += self.assets(program, "pushgateway")
        super().__init__(command, Path(directory) / "pushgateway.log", address, "/-/ready")

    def metrics(self):
        """Its /metrics, as text."""
        return fetch(self.url + "/metrics")[1]

    def groups(self):
        """Its groups: a list of dicts from family name to {type, help, metrics}, each with the grouping key in `labels`."""
        status, body = fetch(self.url + "/api/v1/metrics")
        if status != 200:
            raise ConnectionError(f"{self.url}/api/v1/metrics answered {status}: {body[:300]}")
        return json.loads(body)["data"]


class Etcd(Server):
    """A real etcd of one member, without fsync."""

    def __init__(self, directory, port=None):
        address = f"127.0.0.1:{port or free_port()}"
        command = [find_program("etcd"), f"--data-dir={Path(directory) / 'etcd'}", "--log-level=error", "--unsafe-no-fsync"]
        command += [f"--listen-client-urls=http://{address}", f"--advertise-client-urls=http://{address}"]
        command += ["--listen-peer-urls=http://127.0.0.1:0"]
        super().__init__(command, Path(directory) / "etcd.log", address, "/health")


class Prometheus(Server):
    """A real Prometheus that scrapes one target, with honor_labels, as every scrape of a gateway or an agent must; `settings` are more lines of its scrape, and `rules` are files of rules."""

    def __init__(self, directory, target, interval="1s", features=(), settings="", rules=()):
        directory = Path(directory)
        program = find_program("prometheus")
        config = directory / "prometheus.yml"
        config.write_text(
            "global:\n"
            f"  scrape_interval: {interval}\n"
            f"  scrape_timeout: {interval}\n"
            f"  evaluation_interval: {interval}\n"
            f"rule_files: {json.dumps([str(file) for file in rules])}\n"
            "scrape_configs:\n"
            "  - job_name: persia\n"
            "    honor_labels: true\n"
            f"{settings}"
            "    static_configs:\n"
            f"      - targets: ['{target}']\n"
        )
        address = f"127.0.0.1:{free_port()}"
        super().__init__(
            [
                program,
                f"--config.file={config}",
                f"--storage.tsdb.path={directory / 'tsdb'}",
                f"--web.listen-address={address}",
                *self.assets(program, "web"),
                "--log.level=warn",
                *(f"--enable-feature={feature}" for feature in features),
            ],
            directory / "prometheus.log",
            address,
            "/-/ready",
        )

    def page(self):
        """The URL of its query page, to which it redirects `/`. The path differs between versions and packages."""
        try:
            with urllib.request.urlopen(self.url + "/", timeout=10) as answer:
                return answer.url
        except urllib.error.HTTPError as error:  # a build without pages
            return error.url

    def alerts(self):
        """Its pending and firing alerts: a list of {labels, annotations, state, activeAt}."""
        return json.loads(fetch(f"{self.url}/api/v1/alerts")[1])["data"]["alerts"]

    def query(self, expression):
        """The result of an instant query: a list of {metric, value}."""
        status, body = fetch(f"{self.url}/api/v1/query?" + urllib.parse.urlencode({"query": expression}))
        if status != 200:
            raise ConnectionError(f"{expression}: {status}: {body[:300]}")
        return json.loads(body)["data"]["result"]
