"""A job of real ranks (rank.py), and what its agent, or a Prometheus over several agents, says of it."""

import json
import os
import random
import time
from pathlib import Path
from typing import NamedTuple

from controls import Controls, Hang
from servers import BUILD, Process, fetch, find_built, free_port, wait_until

HERE = Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"  # the interpreter that the package is built for
JOB = "stragglers"
STEP_SECONDS = 0.022
INTERVAL = 0.17  # of collections
HANG_AFTER = 1.0
# Chunks of four steps, or of an interval: the window of the judge, the looks that a verdict takes, and some more.
PATIENCE_CHUNKS = 30


def environment(segments):
    foreign = ("PERSIA_", "TORCHELASTIC_", "REPLICA_INDEX", "RANK", "LOCAL_", "OMPI_", "PMI", "MV2_", "SLURM_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    own = {"PERSIA_METRICS_DIR": str(segments), "PERSIA_JOB_NAME": JOB, "PERSIA_ROLE": "trainer", "OMP_NUM_THREADS": "1"}
    return {**clean, **own, "PYTHONPATH": f"{BUILD / 'lib/python'}:{HERE}", "PYTHONUNBUFFERED": "1"}


class Ranks:
    """The ranks of a job. A context manager that ends them. `prefix(rank)`: words before the command of a rank, for its namespaces."""

    def __init__(self, directory, segments, count, init_method=None, prefix=lambda rank: (), extra=lambda rank: {}):
        """`segments(rank)`: the directory of its metrics. `extra(rank)`: more of its environment."""
        self.step_seconds, self.processes, self.controls = STEP_SECONDS, [], []
        init_method = init_method or f"tcp://127.0.0.1:{free_port()}"
        for rank in range(count):
            file = directory / f"controls-{rank}"
            self.controls.append(Controls(file, create=True))
            command = [*prefix(rank), PYTHON, HERE / "rank.py", rank, count, init_method, file, STEP_SECONDS]
            env = {**environment(segments(rank)), **extra(rank)}
            self.processes.append(Process(command, directory / f"rank-{rank}.log", env=env))

    def wait_until_they_train(self):
        def train():
            for process in self.processes:
                if not process.running():
                    raise RuntimeError(f"a rank ended with {process.popen.returncode}:\n{process.output()[-3000:]}")
            return all("trains" in process.output() for process in self.processes)

        wait_until(train, "the ranks to train", 120)

    def pid(self, rank):
        """Of the rank itself: under a prefix, the command that it runs may be a child."""
        return self.processes[rank].pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.stop()


class OneAgent:
    """The verdicts of the agent of all ranks. A context manager that ends it."""

    name = "one agent"
    interval, quiet = INTERVAL, 2 * INTERVAL

    def __init__(self, directory, segments):
        self.address = f"127.0.0.1:{free_port()}"
        command = [find_built("persia-metrics-agent"), "run", f"--job={JOB}", f"--metrics-dir={segments}", f"--listen={self.address}", "--gateway=off"]
        command += [f"--push-interval={INTERVAL}", f"--hang-after={HANG_AFTER}", "--log-level=warning"]
        self.process = Process(command, directory / "agent.log", env=environment(segments))

    def _get(self, path):
        return json.loads(fetch(f"http://{self.address}/api/v1/{path}")[1])

    def wait_until_it_answers(self):
        wait_until(lambda: self._get("status"), "the agent")

    def stragglers(self):
        """(rank, phase) of each straggler."""
        return {(int(one["instance"].removeprefix("rep_")), one["phase"]) for one in self._get("status")["verdicts"]["stragglers"]}

    def hangs(self):
        """(rank, phase) of each rank that others wait for in a hang."""
        return {(int(one["instance"].removeprefix("rep_")), one["phase"]) for one in self._get("status")["verdicts"]["hangs"]}

    def text(self):
        verdicts = self._get("status")["verdicts"]
        return "; ".join(one["text"] for one in verdicts["stragglers"] + verdicts["hangs"])

    def reports_of_hangs(self):
        """How many hangs were reported so far, by events."""
        return sum(event["name"] == "rank_awaited" for event in self._get("events?type=persia.agent&limit=1000")["events"])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stop()


def settle(verdicts, seconds=30.0):
    """Waits until there has been no verdict for a while: what an agent has measured before counts as long as it is in its window."""
    seen = [time.monotonic()]

    def is_quiet():
        if verdicts.stragglers() or verdicts.hangs():
            seen[0] = time.monotonic()
        return time.monotonic() - seen[0] > verdicts.quiet

    wait_until(is_quiet, "the verdicts to be taken back", seconds)


class Pace(NamedTuple):
    """What a proof asks for: the least delay, as a part of a step, and how many times the usual time a verdict may take."""

    least_delay: float
    times: float


ALONE = Pace(0.1, 1)
BESIDE_OTHERS = Pace(1, 5)  # on a machine that has other work


def delay(ranks, verdicts, rank, phase, part, times):
    """Delays a rank in a phase by a part of a step. Returns the first verdict, or None, and after how many seconds it came."""
    step = ranks.step_seconds * (1 + part) + 0.005
    patience = times * PATIENCE_CHUNKS * max(verdicts.interval, 4 * step)
    ranks.controls[rank].set_delay(phase, part * ranks.step_seconds)
    began = time.monotonic()
    try:
        (found,) = wait_until(lambda: sorted(verdicts.stragglers())[:1], "a verdict", patience, interval=0.03)
    except TimeoutError:
        found = None
    finally:
        ranks.controls[rank].set_delay(phase, 0)
    return found, time.monotonic() - began


class Hanging:
    """A rank hangs in a `with`. `kind`: "SIGSTOP", or the name of a Hang."""

    KINDS = ("SIGSTOP", *(kind.name for kind in Hang if kind != Hang.NONE))

    def __init__(self, ranks, rank, kind):
        self.ranks, self.rank, self.kind = ranks, rank, kind

    def phases(self):
        """In which the rank may be named."""
        return {"DEADLOCK_IN_DATA": {"data"}, "LOST_COLLECTIVE": {"sync"}}.get(self.kind)

    def __enter__(self):
        if self.kind == "SIGSTOP":
            os.kill(self.ranks.pid(self.rank), 19)
        else:
            self.ranks.controls[self.rank].hang = Hang[self.kind]
        return time.monotonic()

    def __exit__(self, *_):
        if self.kind == "SIGSTOP":
            os.kill(self.ranks.pid(self.rank), 18)
        self.ranks.controls[self.rank].hang = Hang.NONE


def hang(ranks, verdicts, rank, kind, patience):
    """Hangs a rank. Returns all that is named while it hangs, and after how many seconds the first was."""
    hanging = Hanging(ranks, rank, kind)
    with hanging as began:
        try:
            wait_until(verdicts.hangs, "a verdict", patience, interval=0.02)
        except TimeoutError:
            return set(), patience
        took = time.monotonic() - began
        time.sleep(2 * verdicts.interval)  # so that a second report would come
        named = verdicts.hangs()
    wrong = hanging.phases() is not None and any(phase not in hanging.phases() for _, phase in named)
    return (set() if wrong else {rank for rank, _ in named}), took


def draw(seed):
    """A source of random numbers."""
    return random.Random(seed)
