"""usage: ./run bench [--check] [--filter NAME] [--json FILE] [--readme]

Measures, and prints the table. NAME: a suite (hot, python, torch, agent, native, remote, demo, screens) or a part of a row's name. --check exits with 1 if a
limit is still missed after measuring again, twice. --json writes every measurement. --readme writes the table into
tests/bench/README.md.
"""

import argparse
import collections
import contextlib
import datetime
import importlib.metadata
import json
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import agent_costs  # noqa: E402
import demo_overhead  # noqa: E402
import ended_processes  # noqa: E402
import growth  # noqa: E402
import hot_calls  # noqa: E402
import native_histograms  # noqa: E402
import page_costs  # noqa: E402
import python_calls  # noqa: E402
import remote_costs  # noqa: E402
import render  # noqa: E402
import rows  # noqa: E402
import top_costs  # noqa: E402
import torch_costs  # noqa: E402
import bench_table  # noqa: E402
from servers import BUILD, find_program  # noqa: E402

README = Path(__file__).resolve().parent / "README.md"
BEGIN, END = "<!-- begin of the table -->\n", "<!-- end of the table -->\n"

# Other virtual machines disturb: with --check, a row that misses a limit is measured at most this often.
TRIES = 3

# The measurement that fills names with this prefix.
MEASURES = {
    "static/": hot_calls.measure,
    "shared/": hot_calls.measure,
    "disabled/": hot_calls.measure,
    "python/": python_calls.measure,
    "render/": render.measure,
    "allocations/": render.measure,
    "exponent/": render.measure,
    "push/": agent_costs.push,
    "scrape/": agent_costs.scrape,
    "memory/": agent_costs.push,
    "idle/": agent_costs.idle,
    "collect/": agent_costs.collect,
    "pipe/": agent_costs.pipe,
    "start/": agent_costs.start,
    "callbacks/": agent_costs.callbacks,
    "values/": agent_costs.values,
    "ended/": ended_processes.measure,
    "growth/": growth.measure,
    "remote/": remote_costs.measure,
    "native/": native_histograms.measure,
    "demo/": demo_overhead.measure,
    "page/": page_costs.measure,
    "top/": top_costs.measure,
    "torch/": torch_costs.measure,
}


def wanted_rows(pattern):
    if pattern in rows.SUITES:
        return list(rows.SUITES[pattern]())
    wanted = []
    for make in rows.SUITES.values():
        wanted += [row for row in make() if pattern is None or pattern.lower() in row.what.lower()]
    return wanted


def measure(wanted):
    needed = {prefix: None for row in wanted for name in row.names() for prefix in MEASURES if name.startswith(prefix)}
    results = collections.defaultdict(list)
    for step in dict.fromkeys(MEASURES[prefix] for prefix in needed):
        print(f"measuring: {(step.__module__ + ' ' + step.__name__).replace(' measure', '')}", end="", file=sys.stderr, flush=True)
        began = time.monotonic()
        try:
            measured = step(BUILD)
        except FileNotFoundError as error:
            if not Path(error.filename or "").is_relative_to(BUILD):
                raise
            sys.exit(f"bench: {error.filename} is missing; PERSIA_BUILD_DIR must name a build with PERSIA_METRICS_BUILD_BENCHMARKS=ON")
        print(f", {time.monotonic() - began:.0f} s", file=sys.stderr)
        for name, values in measured.items():
            results[name].extend(values)
    return results


def missed_of(wanted, results):
    missing = sorted({name for row in wanted for name in row.names()} - results.keys())
    if missing:
        sys.exit(f"bench: nothing measured {', '.join(missing)}")
    return [row for row in wanted if not all(verdict.holds for verdict in bench_table.judge(row, results))]


def first_line(*command):
    with contextlib.suppress(OSError):
        answer = subprocess.run(command, capture_output=True, text=True)
        return (answer.stdout or answer.stderr).splitlines()[0].strip()
    return "?"


def package(name):
    return first_line("dpkg-query", "-W", "-f=${Version}", name)


def conditions():
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    family = re.search(r"cpu family\s*: (.*)\n.*?model\s*: (.*)", Path("/proc/cpuinfo").read_text())
    processors = Path("/proc/cpuinfo").read_text().count("processor\t:")
    name = f"{model.group(1)} (family {family.group(1)}, model {family.group(2)})" if model and family else platform.machine()
    gateway = re.search(r"version (\S+)", first_line(find_program("prometheus-pushgateway"), "--version"))
    return (
        f"{datetime.date.today()}, {name}, {processors} processors, Linux {platform.release()}, {first_line('c++', '--version')}, "
        f"prometheus-cpp {package('prometheus-cpp-dev')}, prometheus_client {importlib.metadata.version('prometheus_client')} on "
        f"Python {platform.python_version()}, PushGateway {gateway.group(1) if gateway else '?'}, {first_line('curl', '--version').split(' (')[0]}."
    )


def main():
    parser = argparse.ArgumentParser(prog="./run bench", description="measures, beside the peers, and prints the table")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a demand is missed")
    parser.add_argument("--filter", metavar="NAME", help="a suite (hot, python, torch, agent, native, remote, demo, screens), or a part of a row's name")
    parser.add_argument("--json", metavar="FILE", help="write every single measurement")
    parser.add_argument("--readme", action="store_true", help="put the table into tests/bench/README.md")
    options = parser.parse_args()
    if options.readme and options.filter:
        parser.error("--readme takes the whole table")
    wanted = wanted_rows(options.filter)
    if not wanted:
        sys.exit(f"bench: no row has \"{options.filter}\" in its name, and no suite is called so ({', '.join(rows.SUITES)})")
    results = measure(wanted)
    missed = missed_of(wanted, results)
    for _ in range(TRIES - 1 if options.check else 0):
        if missed:
            print(f"bench: again, since it was missed: {', '.join(row.what for row in missed)}", file=sys.stderr)
            results |= measure(missed)
            missed = missed_of(wanted, results)
    text = "\n".join(bench_table.lines(wanted, results))
    print(f"{conditions()}\n\n{text}")
    for row in missed:
        print(f"bench: missed: {row.what}", file=sys.stderr)
    if options.json:
        Path(options.json).write_text(json.dumps({"conditions": conditions(), "measurements": results}, indent=1))
    if options.readme:
        before, _, rest = README.read_text().partition(BEGIN)
        README.write_text(f"{before}{BEGIN}{conditions()}\n\n{text}\n{END}{rest.partition(END)[2]}")
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
