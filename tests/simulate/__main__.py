"""How many agents a gateway can serve: a table of simulated agents on real gateways."""

import argparse
import collections
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples/demo"))

from servers import Server, find_program, free_port  # noqa: E402

SIMULATOR = Path(os.environ.get("PERSIA_BUILD_DIR", ROOT / "build/release")) / "tests/simulate/simulate_agents"
LADDER = (10, 30, 100, 300, 1000, 3000, 10000)
COLUMNS = ("agents", "gateways", "check", "pushes/s", "median", "p99", "late", "CPU", "busiest", "memory", "page", "verdict")


class Gateway(Server):
    """A PushGateway without persistence, with or without its consistency check."""

    def __init__(self, directory, number, check):
        program = find_program("prometheus-pushgateway")
        address = f"127.0.0.1:{free_port()}"
        command = [program, f"--web.listen-address={address}", "--persistence.file=", "--log.level=error"]
        command += self.assets(program, "pushgateway")
        if not check:
            command.append("--push.disable-consistency-check")
        super().__init__(command, Path(directory) / f"gateway-{number}.log", address, "/-/ready")

    def cpu_seconds(self):
        """Of its threads; a Go program keeps them. In /proc/<pid>/stat a short run may take no tick of the clock."""
        tasks = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def resident_bytes(self):
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def answer_bytes(self):
        """All that it has written so far: its answers, as it has no persistence and logs errors alone."""
        return int(re.search(r"^wchar: (\d+)", Path(f"/proc/{self.pid}/io").read_text(), re.M)[1])

    def requests(self):
        """Requests so far by handler, as the gateway counts them. Its own page is not among them."""
        with urllib.request.urlopen(self.url + "/metrics", timeout=120) as answer:
            found = re.findall(r'^pushgateway_http_requests_total{.*handler="([^"]+)".*} (\d+)$', answer.read().decode(), re.M)
        counts = collections.Counter()
        for handler, count in found:
            counts[handler] += int(count)
        return counts

    def page(self):
        """Seconds to read its /metrics as Prometheus does, and the bytes; None if it takes longer than half a minute."""
        began = time.monotonic()
        request = urllib.request.Request(self.url + "/metrics", headers={"Accept-Encoding": "gzip"})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                size = len(answer.read())
        except OSError:
            return None
        return time.monotonic() - began, size


def simulate(plan, agents, count, check, directory):
    """Runs `agents` agents on `count` gateways and returns the measurements."""
    gateways = []
    try:
        for number in range(count):
            gateways.append(Gateway(directory, number, check))
        addresses = ",".join(gateway.address for gateway in gateways)
        command = [SIMULATOR, "--agents", agents, "--series", plan.series, "--gateways", addresses]
        command += ["--interval", plan.interval, "--seconds", plan.seconds, "--state", tempfile.mkdtemp(dir=directory)]
        with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True) as simulator:
            try:
                if simulator.stdout.readline() != "measuring\n":
                    raise RuntimeError(f"the simulation ended with {simulator.wait()}")
                began, before = time.monotonic(), [gateway.cpu_seconds() for gateway in gateways]
                line = simulator.stdout.readline()
                passed = time.monotonic() - began
                cpu = [(gateway.cpu_seconds() - was) / passed for gateway, was in zip(gateways, before)]
                if not line:
                    raise RuntimeError(f"the simulation ended with {simulator.wait()}")
                measured = json.loads(line)
                answers = sum(gateway.answer_bytes() for gateway in gateways)
                requests = sum((gateway.requests() for gateway in gateways), collections.Counter())
                pages = [gateway.page() for gateway in gateways]
                simulator.wait(60)
            finally:
                simulator.kill()
        return {
            **measured,
            "agents": agents,
            "gateways": count,
            "check": check,
            "answer_bytes": answers,
            "handlers": requests,
            "rate": measured["requests"] / passed,
            "late": max(0.0, 1 - (measured["pushes"] - measured["failed"]) / measured["expected"]),
            "cpu": sum(cpu),
            "busiest": max(cpu),
            "memory": max(gateway.resident_bytes() for gateway in gateways),
            "page": None if None in pages else max(seconds for seconds, _ in pages),
        }
    finally:
        for gateway in gateways:
            gateway.stop()


def verdict(plan, row):
    """The limits that were exceeded, or "good". A few pushes end just before or after the measurement."""
    wrong = []
    if row["late"] > 0.1:
        wrong.append("pushes are left out")
    if row["p99"] > plan.interval:
        wrong.append("longer than the interval")
    if row["page"] is None or row["page"] > plan.interval:
        wrong.append("its page is longer than a scrape")
    return ", ".join(wrong) or "good"


def cells(plan, row):
    page = "over 30 s" if row["page"] is None else f"{row['page']:.2f} s"
    return (
        f"{row['agents']}",
        f"{row['gateways']}",
        "on" if row["check"] else "off",
        f"{row['rate']:.1f}",
        f"{row['median'] * 1000:.1f} ms",
        f"{row['p99'] * 1000:.1f} ms",
        f"{row['late'] * 100:.0f} %",
        f"{row['cpu']:.2f}",
        f"{row['busiest']:.2f}",
        f"{row['memory'] / 1e6:.0f} MB",
        page,
        row["verdict"],
    )


def numbers(text):
    values = [int(word) for word in text.split(",")]
    if min(values) < 1:
        raise ValueError
    return values


def main():
    parser = argparse.ArgumentParser(prog="./run simulate", description=__doc__)
    parser.add_argument("--agents", type=int, default=1000, help="the largest number, after 10, 30, 100, ... (default 1000)")
    parser.add_argument("--only", action="store_true", help="only that number of agents")
    parser.add_argument("--series", type=int, default=500, help="of each agent's worker, beside 100 of the agent itself (default 500)")
    parser.add_argument("--gateways", type=numbers, default=[1, 2, 4], help="numbers of gateways, separated by commas (default 1,2,4)")
    parser.add_argument("--interval", type=float, default=10, help="of pushes, in seconds (default 10)")
    parser.add_argument("--seconds", type=float, default=20, help="how long each case is measured (default 20)")
    parser.add_argument("--check", choices=("on", "off", "both"), default="both", help="the gateways' consistency check (default both)")
    parser.add_argument("--all", action="store_true", help="also cases larger than one that exceeded a limit")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each case, and no table")
    plan = parser.parse_args()
    if plan.agents < 1 or plan.series < 1 or plan.interval <= 0 or plan.seconds < plan.interval:
        parser.error("numbers must be above 0, and --seconds not less than --interval")
    # Each agent has a connection to its gateway, and the gateways inherit this.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    ladder = [plan.agents] if plan.only else sorted({step for step in LADDER if step < plan.agents} | {plan.agents})
    if not plan.json:
        print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS), flush=True)
    with tempfile.TemporaryDirectory(prefix="persia-simulate-", dir="/dev/shm") as directory:
        for check in {"on": [True], "off": [False], "both": [True, False]}[plan.check]:
            for count in plan.gateways:
                for agents in ladder:
                    row = simulate(plan, agents, count, check, directory)
                    row["verdict"] = verdict(plan, row)
                    print(json.dumps(row) if plan.json else "| " + " | ".join(cells(plan, row)) + " |", flush=True)
                    if row["verdict"] != "good" and not plan.all:
                        break


if __name__ == "__main__":
    sys.exit(main())
