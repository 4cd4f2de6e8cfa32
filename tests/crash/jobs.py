"""Jobs whose agents are recorded: real agents and workers, a real PushGateway, and a receiver of remote write."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from recorder import Recorder, has_ended, strace
from remote_write_receiver import Receiver
from servers import ROOT, Gateway, Process, free_port, wait_until

BUILD = Path(os.environ.get("PERSIA_BUILD_DIR", ROOT / "build/release"))
AGENT = BUILD / "agent/cli/persia-metrics-agent"
WORKER = BUILD / "tests/e2e/worker/e2e_worker"
NAME = "crash"
# So many series that the state gets a checkpoint while it grows.
ROWS = 250


def environment(**extra):
    return {"PATH": os.environ["PATH"], **extra}


def flags(root, state_elsewhere, segments=None):
    """Of an agent whose files are below `root`."""
    words = [f"--job={NAME}", f"--metrics-dir={segments or root / 'metrics'}", f"--events-file={root / 'events.jsonl'}", "--push-interval=0.1"]
    return [*words, f"--state-dir={root / 'state'}"] if state_elsewhere else words


class Worker(Process):
    """The n-th worker of the run counts 4^n, so that a sum tells which workers are counted, and how often."""

    def __init__(self, job, number, event):
        env = environment(PERSIA_METRICS_DIR=str(job.metrics), PERSIA_JOB_NAME=NAME, PERSIA_ROLE="trainer", REPLICA_INDEX=str(number % 2))
        self._job = job
        before = set(job.metrics.glob("*.seg"))
        super().__init__([WORKER], job.directory / f"worker-{event}.log", env=env, stdin=subprocess.PIPE)
        (self.path,) = wait_until(lambda: set(job.metrics.glob("*.seg")) - before, "the worker's segment")
        self._segment = open(self.path, "rb")
        half = 4**number // 2
        self.tell(*(["event crash e%d" % event]), *(f"count crash counts {by}" for by in (half, 4**number - half) if by))

    def tell(self, *lines):
        self.popen.stdin.write("".join(line + "\n" for line in lines))
        self.popen.stdin.flush()
        wait_until(lambda: f"done {lines[-1]}\n" in self.output(), f"the worker's answer to {lines[-1]!r}", interval=0.01)

    def leave(self):
        """It ends, and its segment is folded and removed, if an agent runs."""
        self.popen.stdin.close()
        assert self.wait() == 0, self.output()
        self._segment.seek(0)
        self._job.recorder.segment(self.path, self._segment.read())
        self._segment.close()
        if self._job.agent:
            wait_until(lambda: not self.path.exists(), "the end of the segment", interval=0.01)


class Job:
    def __init__(self, directory, state_elsewhere=False, segments_lost=False):
        self.directory = Path(directory)
        self.root = Path(tempfile.mkdtemp(prefix="persia-crash-job-", dir="/dev/shm"))
        self._memory = Path(tempfile.mkdtemp(prefix="persia-crash-segments-", dir="/dev/shm")) if segments_lost else None
        self.metrics = (self._memory or self.root) / "metrics"
        self.state_elsewhere = state_elsewhere
        self.recorder = Recorder(self.root)
        self.agent = None
        self._trace = None
        self._agents = self._workers = self._in_run = 0
        self.gateway = Gateway(self.directory)
        self.receiver = Receiver(free_port()).start()
        settings = {"remote_write": [{"url": self.receiver.url, "name": "db", "metadata_config": {"send": False}}]}
        self._settings = self.directory / "settings.yaml"
        self._settings.write_text(json.dumps({"PersiaMetricsConfig": settings}))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.agent:
            self.agent.stop()
        self.receiver.stop()
        self.gateway.stop()
        for directory in filter(None, (self.root, self._memory)):
            shutil.rmtree(directory, ignore_errors=True)

    def start(self, *more):
        """An agent, which is recorded."""
        self._agents += 1
        self._trace = self.directory / f"trace-{self._agents}"
        words = flags(self.root, self.state_elsewhere, self.metrics)
        command = [AGENT, "run", *words, f"--config={self._settings}", f"--gateway={self.gateway.address}", "--push-format=text", "--listen=off", *more]
        self.agent = Process(strace(self._trace, command), self.directory / f"agent-{self._agents}.log", env=environment())
        wait_until(lambda: (self.metrics / "agent.conf").exists() or not self.agent.running(), "the agent to start", interval=0.01)
        assert self.agent.running(), self.agent.output()

    def end(self, by=None):
        """The agent ends, by a signal or by itself."""
        if by is not None:
            self.agent.signal(by)
        code = self.agent.wait()
        assert code == (-signal.SIGKILL if by == signal.SIGKILL else 0), self.agent.output()[-4000:]
        pid, self.agent = self.agent.pid, None
        wait_until(lambda: has_ended(self._trace, pid), "the end of the recording", interval=0.01)
        self.recorder.read(self._trace)

    def end_run(self):
        self.end()
        self.recorder.run_ended()
        self._in_run = 0

    def worker(self):
        self._workers += 1
        self._in_run += 1
        return Worker(self, self._in_run - 1, self._workers - 1)

    def shown(self):
        """Waits until the gateway and the receiver have a push after now."""
        total = sum(4**n for n in range(self._in_run))

        def seen():
            values = [float(line.rsplit(" ", 1)[1]) for line in self.gateway.metrics().splitlines() if line.startswith("crash_counts{")]
            return sum(values) == total and len(self.receiver.visits) > visits

        visits = len(self.receiver.visits)
        wait_until(seen, f"a count of {total} on the gateway", interval=0.02)


def several_agents(job):
    """Workers come and go; the agent is killed, and stopped; the run ends, and another one begins."""
    job.start()
    first, second = job.worker(), job.worker()
    first.tell(*(f"count_feat crash rows feature_{n} 1" for n in range(ROWS)))
    job.shown()
    first.leave()
    third = job.worker()
    second.leave()
    third.tell(*(f"count_feat crash rows feature_{n} 1" for n in range(ROWS)))
    job.shown()
    job.end(signal.SIGKILL)
    third.leave()
    job.start()
    fourth = job.worker()
    fourth.tell(*(f"count_feat crash rows feature_{n} 1" for n in range(ROWS)))
    fourth.leave()
    job.shown()
    job.end(signal.SIGTERM)
    last = job.worker()
    job.start("--exit-when-idle=0.2s")
    last.leave()
    job.end_run()
    job.start()
    job.worker().leave()
    job.shown()
    job.end(signal.SIGTERM)


def damaged_state(job):
    """A bit of the state flips while no agent runs. The next agent sets it aside."""
    job.start()
    job.worker().leave()
    job.shown()
    job.end(signal.SIGTERM)
    state = job.metrics / "agent.state"
    content = bytearray(state.read_bytes())
    content[len(content) // 2] ^= 0x40
    state.write_bytes(content)
    job.recorder.damaged(state)
    job.start()
    job.worker().leave()
    job.end(signal.SIGTERM)
