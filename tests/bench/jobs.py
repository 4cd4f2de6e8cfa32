"""A job of any size and its agent, for those that measure the agent from outside."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples/demo"))

from servers import Process, fetch, free_port, wait_until  # noqa: E402

_FOREIGN = ("PERSIA_", "TORCHELASTIC_", "REPLICA_INDEX", "RANK", "LOCAL_", "OMPI_", "PMI", "MV2_", "SLURM_", "BENCHMARK_AI")


def clean_environment(**more):
    return {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)} | more


class Workers:
    """Processes that have `series` in all, each a separate instance. A context manager."""

    def __init__(self, build, directory, series, processes):
        self._processes = []
        for replica in range(processes):
            env = clean_environment(
                PERSIA_METRICS_DIR=str(directory), REPLICA_INDEX=str(replica), PERSIA_METRICS_SEGMENT_BYTES=str(1 << 28)
            )
            command = [build / "tests/bench/bench_worker", str(series // processes)]
            self._processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True))
        for process in self._processes:
            assert process.stdout.readline() == "ready\n", "a worker did not start"

    def change(self):
        """All values are others afterwards."""
        for process in self._processes:
            process.stdin.write("\n")
            process.stdin.flush()
        for process in self._processes:
            assert process.stdout.readline() == "changed\n", "a worker ended"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self._processes:
            process.stdin.close()
        for process in self._processes:
            process.wait(30)
            process.stdout.close()


class Agent(Process):
    """persia-metrics-agent beside a job."""

    def __init__(self, build, directory, segments, *options):
        self.address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{self.address}"
        command = [build / "agent/cli/persia-metrics-agent", "run", "--job=bench", f"--metrics-dir={segments}"]
        command += [f"--listen={self.address}", "--log-level=warning", *options]
        super().__init__(command, Path(directory) / "agent.log", env=clean_environment())
        wait_until(lambda: fetch(self.url + "/-/healthy")[0] == 200, "the agent")

    def status(self):
        return json.loads(fetch(self.url + "/api/v1/status")[1])

    def pushes(self):
        return self.status()["gateway"]["pushes"]

    def await_push(self):
        """The end of the next push."""
        before = self.pushes()
        wait_until(lambda: self.pushes() > before, "a push", 60, 0.01)

    def processor_seconds(self):
        """Of all its threads so far, also of those that have ended: by the clock of the process (clock_getcpuclockid)."""
        return time.clock_gettime((~self.pid << 3) | 2)

    def anonymous_mib(self):
        """Memory that is its own: its code and the workers' segments are files."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("RssAnon:")[1].split()[0]) / 1024

    def value(self, name, label=""):
        """The sum of a family's samples on /metrics, of those that have the label."""
        lines = fetch(self.url + "/metrics")[1].splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith((name + "{", name + " ")) and label in line)


@contextlib.contextmanager
def folders():
    """A folder for logs, and one for segments in memory, as a job has it."""
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory(dir="/dev/shm") as segments:
        yield Path(directory), Path(segments)
