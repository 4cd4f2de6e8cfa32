"""A host with GPUs: a stand-in for NVIDIA's library (gpu/stand_in.c), an agent that finds it, and ranks."""

import os
import re
import signal
import subprocess
import types
import uuid

import pytest
from conftest import BUILD, WORKER, Job, Worker, environment
from servers import wait_until
from supervised import state

# The inode of the initial pid namespace, in which the driver counts processes (PROC_PID_INIT_INO).
IN_INITIAL_NAMESPACE = os.stat("/proc/self/ns/pid").st_ino == 4026531836


class GpuHost:
    """`lines` describe the devices, as in gpu/stand_in.c; `library`: now, old, least, a text that is no library, or None for none."""

    def __init__(self, job, tmp_path, monkeypatch):
        self.job, self._started, self._count = job, job._started, 0
        job.name = f"{tmp_path.name}-{uuid.uuid4().hex[:8]}"  # no other agent of this host has it
        self._folder = tmp_path / "driver"
        self._folder.mkdir()
        self._description = tmp_path / "gpus"
        monkeypatch.setenv("NVML_STAND_IN", str(self._description))
        self._monkeypatch = monkeypatch

    def describe(self, *lines):
        """What the library does from its next call on."""
        draft = self._description.with_suffix(".draft")
        draft.write_text("\n".join(lines) + "\n")
        draft.rename(self._description)
        self._lines = lines

    def add(self, *lines):
        self.describe(*self._lines, *lines)

    def start(self, *lines, library="now", flags=()):
        """An agent beside the job. It collects each 0.2 s, and reads GPUs each 0.1 s."""
        self.describe(*lines)
        place = self._folder / "libnvidia-ml.so.1"
        if library in ("now", "old", "least"):
            place.symlink_to(BUILD / f"tests/e2e/gpu/libe2e_nvml_{library}.so")
        elif library is not None:
            place.write_text(library)
        self._monkeypatch.setenv("LD_LIBRARY_PATH", str(self._folder))
        flags = {"--push-interval": "0.1", **dict(flag.split("=") for flag in flags)}
        self.agent = self.job.agent(*(f"{name}={value}" for name, value in flags.items()))
        return self.agent

    def rank(self, number, **env):
        """A rank that has started. `env`: of its own."""
        who = {"PERSIA_METRICS_DIR": str(self.job.segments), "PERSIA_JOB_NAME": self.job.name, "PERSIA_ROLE": "trainer"}
        self._count += 1
        worker = Worker([WORKER], self.job.directory / f"rank-{self._count}.log", env=environment(**who, REPLICA_INDEX=str(number), **env), stdin=subprocess.PIPE)
        self._started(worker)
        worker.tell("count my_app steps 1")
        return worker

    def metrics(self):
        return self.agent.metrics()

    def values(self, name):
        """By the device: the instance and the value, or a list of them."""
        found = {}
        for (other, labels), value in self.metrics().items():
            if other == name:
                labels = dict(labels)
                found.setdefault(labels["gpu"], []).append((labels["instance"], value))
        return {gpu: each[0] if len(each) == 1 else each for gpu, each in found.items()}

    def ranks(self):
        """The instance of each device that is up."""
        return {gpu: instance for gpu, (instance, value) in self.values("persia_gpu_up").items()}

    def wait_for(self, condition, what):
        def seen():
            found = condition()
            if not found:
                raise ValueError(f"{what}: {self.ranks()}\n{self.agent.output()[-2000:]}")
            return found

        return wait_until(seen, what)

    def wait_for_ranks(self, **ranks):
        """`gpu_0="rep_1"`: device 0 is on that rank."""
        want = {name.removeprefix("gpu_").replace("_", ":"): instance for name, instance in ranks.items()}
        self.wait_for(lambda: self.ranks() == want, f"devices on {want}")

    def log(self):
        """The lines about GPUs, without times."""
        return [re.sub(r"^\S+ persia-metrics-agent ", "", line) for line in self.agent.output().splitlines() if "GPU" in line]

    def reader(self):
        """The pid of the reader's process; None if there is none."""
        agents = subprocess.run(["pgrep", "-P", str(self.agent.popen.pid)], stdout=subprocess.PIPE, text=True).stdout.split()
        return int(agents[0]) if agents else None

    def check(self, log):
        """The agent collects, and the log has these lines about GPUs, each once."""
        collections = self.metrics().one("persia_agent_collect_duration_seconds_count")
        self.wait_for(lambda: self.metrics().one("persia_agent_collect_duration_seconds_count") > collections + 1, "two more collections")
        lines = self.log()
        assert len(lines) == len(log) and all(word in line for word, line in zip(log, lines)), lines

    def ends(self):
        """The agent ends, and so does the reader, even if a call hangs for longer than the test waits."""
        reader = self.reader()
        self.agent.signal(signal.SIGTERM)
        assert self.agent.wait() == 0
        if reader is not None:
            wait_until(lambda: state(reader) == "Z", "the end of the reader")


@pytest.fixture
def host(tmp_path, segments, started, monkeypatch):
    return GpuHost(Job(tmp_path, segments, types.SimpleNamespace(address="off"), started), tmp_path, monkeypatch)
