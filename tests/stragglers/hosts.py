"""The ranks of a job on hosts of their own: a network namespace and an agent each. A Prometheus with the shipped rules names who is slow.

`prove` runs this file in new network, mount and pid namespaces, which end with it:

    hosts.py SEED DELAYS HANGS
"""

import functools
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
for folder in (ROOT / "examples/demo", ROOT / "tests/e2e"):
    sys.path.insert(0, str(folder))

import proofs  # noqa: E402
from slow_job import HANG_AFTER, INTERVAL, JOB, PYTHON, Pace, Ranks, environment, settle  # noqa: E402
from servers import Process, Prometheus, fetch, find_built, wait_until  # noqa: E402

HOSTS = 4
SCRAPE = 0.5  # seconds
RULES = ROOT / "config/prometheus/rules/recording.yml"
THRESHOLDS = ROOT / "config/prometheus/rules/thresholds.yml"
# The agents collect in a 60th of their usual interval: so the rules look back as much less.
SHORT = {"offset 30s": "offset 1s", "offset 1m": "offset 2s"}


def address(host):
    return f"10.77.0.{host + 1}"


def inside(host):
    """The words before a command on a host."""
    return ["ip", "netns", "exec", f"host{host}"]


def make_hosts():
    """Namespaces on a bridge, on which this one is, too."""
    words = [
        "mkdir -p /run/netns",
        "mount -t tmpfs tmpfs /run/netns",
        "ip link set lo up",
        "ip link add hosts type bridge",
        f"ip addr add {address(HOSTS)}/24 dev hosts",
        "ip link set hosts up",
    ]
    for host in range(HOSTS):
        words += [
            f"ip netns add host{host}",
            f"ip link add port{host} type veth peer name eth0 netns host{host}",
            f"ip link set port{host} master hosts up",
            f"ip -n host{host} addr add {address(host)}/24 dev eth0",
            f"ip -n host{host} link set eth0 up",
            f"ip -n host{host} link set lo up",
        ]
    for line in words:
        subprocess.run(line.split(), check=True)


class ByPrometheus:
    """The verdicts of the shipped rules on the values of all agents."""

    name = "an agent for each rank"
    interval = SCRAPE + INTERVAL  # of the scrape and of the rules; and of the collection
    quiet = 5 * SCRAPE

    def __init__(self, prometheus):
        self._prometheus, self._hung, self._reports = prometheus, set(), 0

    def _named(self, rule):
        found = self._prometheus.query(f'{rule}{{job="{JOB}"}}')
        return {(int(one["metric"]["instance"].removeprefix("rep_")), one["metric"]["phase"]) for one in found}

    def stragglers(self):
        return self._named("rank:straggler:seconds_per_step")

    def hangs(self):
        hung = self._named("rank:hang:seconds")
        self._reports += len({rank for rank, _ in hung} - {rank for rank, _ in self._hung})
        self._hung = hung
        return hung

    def reports_of_hangs(self):
        """How many ranks began to be named, as seen by `hangs`."""
        return self._reports


def run(seed, delays, hangs, *pace):
    make_hosts()
    source = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="persia-hosts-", dir="/dev/shm") as name:
        directory, agents = Path(name), []
        try:
            for host in range(HOSTS):
                segments = directory / f"segments-{host}"
                segments.mkdir(mode=0o700)
                command = [*inside(host), find_built("persia-metrics-agent"), "run", f"--job={JOB}", f"--metrics-dir={segments}"]
                command += [f"--listen={address(host)}:19091", "--gateway=off", f"--push-interval={INTERVAL}", f"--hang-after={HANG_AFTER}"]
                env = {**environment(segments), "REPLICA_INDEX": str(host)}
                agents.append(Process([*command, "--log-level=warning"], directory / f"agent-{host}.log", env=env))
            with Ranks(
                directory,
                lambda rank: directory / f"segments-{rank}",
                HOSTS,
                init_method=f"tcp://{address(0)}:29500",
                prefix=inside,
                extra=lambda rank: {"GLOO_SOCKET_IFNAME": "eth0"},
            ) as ranks:
                ranks.wait_until_they_train()
                for host in range(HOSTS):
                    wait_until(lambda: "persia_rank_" in fetch(f"http://{address(host)}:19091/metrics")[1], f"the metrics of host {host}")
                rules = directory / "rules.yml"
                rules.write_text(functools.reduce(lambda text, words: text.replace(*words), SHORT.items(), RULES.read_text()))
                targets = "', '".join(f"{address(host)}:19091" for host in range(HOSTS))
                with Prometheus(directory, targets, interval=f"{int(SCRAPE * 1000)}ms", rules=[THRESHOLDS, rules]) as prometheus:
                    verdicts = ByPrometheus(prometheus)
                    wait_until(lambda: len(prometheus.query("rank:sync:seconds_per_step")) == HOSTS, "the rules", 60)
                    settle(verdicts)
                    show = lambda text: print(text, flush=True)  # noqa: E731
                    named = proofs.delays(ranks, verdicts, source, delays, Pace(*pace), show)
                    hung = proofs.hangs(ranks, verdicts, source, hangs, Pace(*pace), show)
        finally:
            for agent in agents:
                agent.stop()
    for tally in (named, hung):
        if tally.cases:
            print(tally, flush=True)
    return not named.wrong_rank and len(named.wrong_phase) <= named.cases * 0.05 and not hung.wrong_rank


def prove(plan, source, _directory):
    import needs

    command = needs.in_namespaces(PYTHON, __file__, source.randrange(2**32), plan.host_delays, plan.host_hangs, *plan.pace)
    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
    return subprocess.run([str(word) for word in command], env={**os.environ, "PATH": path}, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(0 if run(*map(json.loads, sys.argv[1:])) else 1)
