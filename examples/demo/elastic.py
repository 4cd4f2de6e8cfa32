"""Runs an elastic job on a real etcd, whose workers join, die and hang, then compares the gateway's values with the workers' ledgers."""

import collections
import json
import os
import signal
import time

from job import agent_command, print_pages, printed_alerts, rules_of_a_short_job, say, wait_for
from servers import BUILD, ROOT, Etcd, Gateway, Process, Prometheus, fetch, wait_until

JOB = "elastic_demo"
PROGRAM = ROOT / "examples/elastic_job/main.py"
PYTHON = "/usr/bin/python3"  # the interpreter that the package is built for
STEP_SECONDS = 0.05
PHASES = ("data", "forward", "backward", "optimizer")  # of each step, that can be made slow
SLOW_SECONDS = 0.05  # by which a straggler is longer in each step
VERDICT_SECONDS = 60  # until the agent has seen enough steps, on a busy machine
HANG_SECONDS = 5  # how long a worker stands still before it counts as hung; in a real job it is a minute or more


class ElasticJob:
    """Launchers of workers, and the workers' ledgers. Main thread only."""

    def __init__(self, directory, segments, etcd, least, most, steps, step_seconds=STEP_SECONDS, environment=os.environ, flags=()):
        """`etcd`: its address. `least` and `most`: limits of the number of workers. `flags`: more of the launchers."""
        self.directory, self.ledgers, self.checkpoint = directory, directory / "ledgers", directory / "checkpoint.json"
        self.ledgers.mkdir()
        self._url = f"etcd://{etcd}/{JOB}?min_workers={least}&max_workers={most}"
        self._options = [f"--steps={steps}", f"--step-seconds={step_seconds}"]
        self._options += [f"--checkpoint={self.checkpoint}", f"--ledger={self.ledgers}", *flags]
        metrics = {"PERSIA_METRICS_DIR": str(segments), "PERSIA_JOB_NAME": JOB, "PYTHONPATH": str(BUILD / "lib/python")}
        self.environment = {**environment, **metrics}

    def launch(self, workers, first_replica=0, show=False):
        """Starts a launcher, as each machine of a job would. `show`: its output goes to the terminal, not to its log."""
        command = self.command(workers, first_replica)
        return Process(command, self.directory / f"launcher-{first_replica}.log", env=self.environment, show=show)

    def command(self, workers, first_replica=0):
        """A launcher's command, to be run in `environment`."""
        return [PYTHON, PROGRAM, self._url, f"--workers={workers}", f"--first-replica={first_replica}", *self._options]

    def trainers(self):
        """The lines of each live worker's ledger, by its pid."""
        ledgers = {int(path.name.split("-")[2]): path for path in self.ledgers.glob("trainer-*")}
        return {pid: path.read_text().splitlines() for pid, path in ledgers.items() if os.path.exists(f"/proc/{pid}")}

    def training(self, world_size):
        """The pids by rank of a round with `world_size` members, once all of them have made steps; else an empty list."""
        ranks = {}
        for pid, lines in self.trainers().items():
            round_begins = max((at for at, line in enumerate(lines) if line.startswith("rendezvous")), default=len(lines))
            if lines[-1:] == ["step"] and lines[round_begins].endswith(f"of {world_size}"):
                ranks[int(lines[round_begins].split()[3])] = pid
        return [ranks[rank] for rank in sorted(ranks)] if len(ranks) == world_size else []

    def counts(self):
        """The number of entries of each kind in all ledgers."""
        return collections.Counter(line.split()[0] for path in self.ledgers.iterdir() for line in path.read_text().splitlines())


def on_gateway(groups, job=JOB):
    """The same counts on the gateway, and all samples of the job: (name, labels) -> value."""
    samples = {}
    for group in groups:
        for name, family in group.items():
            if isinstance(family, dict) and "metrics" in family:
                for metric in family["metrics"]:
                    if metric["labels"].get("job") == job:
                        labels = tuple(sorted((key, value) for key, value in metric["labels"].items() if key not in ("job", "ip_addr")))
                        samples[name, labels] = float(metric["value"] if "value" in metric else metric["count"])

    def total(wanted, **having):
        return sum(value for (name, labels), value in samples.items() if name == wanted and having.items() <= dict(labels).items())

    counts = {
        "rendezvous": total("torchelastic_rendezvous_total", result="success"),
        "restart": total("persia_process_restarts_total", role="trainer"),
        "checkpoint": total("torchelastic_checkpoint_write_latency_seconds"),
    }
    return counts, samples


def reasons(page, kind):
    """Why the job is not well, as the agent's page says it: the headlines of this kind of reason."""
    health = json.loads(fetch(f"http://{page}/api/v1/status")[1])["health"]
    return [reason["headline"] for reason in health["reasons"] if reason["kind"] == kind]


def deaths(page):
    """What the agent's page says of workers that died: the texts of its events."""
    events = json.loads(fetch(f"http://{page}/api/v1/events?type=persia.agent")[1])["events"]
    return [event["metadata"]["text"] for event in events if event["name"] == "worker_died"]


def harm(job, launchers, workers, page):
    """Kills a worker, starts another, stops and resumes one. Each time the others meet again and continue.

    Returns sentences on what a person should have seen, and where.
    """
    victim = wait_until(lambda: job.training(workers), "the workers to train")[-1]
    say(f"SIGKILL to worker {victim}; its launcher starts another")
    killed_at = time.strftime("%H:%M:%S")
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: victim not in job.trainers() and job.training(workers), "the workers to train again")
    (death,) = wait_until(lambda: deaths(page), "the agent to see the death", 60)
    say("one more worker joins")
    launchers.append(job.launch(1, workers))
    stopped = wait_until(lambda: job.training(workers + 1), "the worker that joined to train")[0]
    wait_until(lambda: job.training(workers + 1) and time.sleep(HANG_SECONDS) is None, "some steps of all workers", 3 * HANG_SECONDS)
    say(f"SIGSTOP to worker {stopped}, rank 0, which simulates a hang")
    stopped_at = time.strftime("%H:%M:%S")
    os.kill(stopped, signal.SIGSTOP)
    wait_until(lambda: job.training(workers), "the others to train without it")
    (hung,) = wait_until(lambda: reasons(page, "hung"), "the agent to see the hang", 60)
    say(f"the agent's page says: Degraded, {hung}. Look at it now; it goes on in {2 * HANG_SECONDS} s")
    time.sleep(2 * HANG_SECONDS)
    say(f"SIGCONT to worker {stopped}, which rejoins")
    os.kill(stopped, signal.SIGCONT)
    return [
        f"{killed_at}: {death!r} among the events of the agent's page, and a restart of that worker in its table",
        f"{stopped_at}: a few seconds later, Degraded and the reason {hung.split(',')[0]!r} at the top of the agent's page, and in the tab's title",
        "the alert PersiaRankHung, pending: it fires only if a rank hangs for a minute more",
    ]


def await_straggler(slow, page):
    """Waits for the agent to name the rank that is slow. Returns sentences on what a person should have seen, and where; none: it named none."""
    rank, phase = slow
    say(f"worker rep_{rank} is {SLOW_SECONDS} s longer in {phase} in each step")
    found_at = time.strftime("%H:%M:%S")

    def verdict():
        status = json.loads(fetch(f"http://{page}/api/v1/status")[1])
        return status["verdicts"]["stragglers"]

    (straggler,) = wait_until(verdict, "the agent to name the straggler", VERDICT_SECONDS, interval=1)
    say(f"the agent's verdict: {straggler['text']}")
    if (straggler["instance"], straggler["phase"]) != (f"rep_{rank}", phase):
        return []
    return [
        f"{found_at}: a few seconds later, {straggler['text']!r} on the agent's page, in Who waits for whom, and below it, what the steps consist of",
        "the event straggler_found on the page, and the series persia_straggler",
        "the alert PersiaStraggler, pending: it fires only if it stays so for minutes",
    ]


def run(workers, steps, kill, slow, directory, segments):
    """`slow`: the rank and the phase that are slow, or None."""
    rules = rules_of_a_short_job(directory)
    with Etcd(directory) as etcd, Gateway(directory) as gateway, Prometheus(directory, gateway.address, rules=rules) as prometheus:
        command, page = agent_command("run", JOB, gateway, segments, f"--hang-after={HANG_SECONDS}")
        print_pages(prometheus, "sum by (instance) (rate(torchelastic_train_step_duration_seconds_count[15s]))", gateway, page)
        # A straggler is judged as long as the ranks stay the same: all of them meet at the start.
        least = workers if slow else max(1, workers - 1)
        flags = [f"--slow={slow[0]}:{slow[1]}:{SLOW_SECONDS}"] if slow else []
        job = ElasticJob(directory, segments, etcd.address, least, workers + 1, steps, flags=flags)
        codes, seen = [], []
        with printed_alerts(prometheus), Process(command, directory / "agent.log", show=True):
            launchers = [job.launch(workers, show=True)]
            try:
                if slow:
                    seen = await_straggler(slow, page)
                if kill:
                    seen += harm(job, launchers, workers, page)
                codes = [wait_for(launcher) for launcher in launchers]
            finally:
                for launcher in launchers:
                    launcher.stop()
        held, samples = on_gateway(gateway.groups())
    for (name, labels), value in sorted(samples.items()):
        if name.startswith(("torchelastic_", "elastic_job_", "persia_events_total", "persia_process_restarts_total")):
            print(f"  {name}{{{', '.join(f'{key}={text}' for key, text in labels)}}} {value:g}")
    print(f"\n{'':12}{'on the gateway':>16}{'in the ledgers':>16}")
    written = job.counts()
    for what, value in held.items():
        print(f"{what:12}{value:16g}{written[what]:16d}  {'=' if value == written[what] else 'differs'}")
    if seen:
        print("\nYou should have seen:")
        for sentence in seen:
            print(f"  {sentence}")
    agrees = all(value == written[what] for what, value in held.items())
    return 0 if agrees and codes and not any(codes) and (seen or not (slow or kill)) else 1
