"""The hot calls of the C++ library, with the static one, with the shared one, and with metrics disabled."""

import json
import subprocess
import tempfile

from jobs import clean_environment

ROUNDS = 10
REPETITIONS = 2
SECONDS = 0.01
SECONDS_OF_TWO = 0.05  # threads do not start at the same instant, and a part of it is each alone
QUIET = 1.1
QUIET_ROUNDS = 6  # of those with two threads
MOST_ROUNDS = 60


def run(program, pattern, seconds=SECONDS, **environment):
    """{name: [ns of processor time]} of one run of a Google Benchmark program."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        command = [program, f"--benchmark_filter={pattern}", f"--benchmark_repetitions={REPETITIONS}", "--benchmark_format=json"]
        command += [f"--benchmark_min_time={seconds}", "--benchmark_enable_random_interleaving=true"]
        answer = subprocess.run(
            command, env=clean_environment(PERSIA_METRICS_DIR=directory, **environment), check=True, capture_output=True, text=True
        )
    results = {}
    for entry in json.loads(answer.stdout)["benchmarks"]:
        if entry["run_type"] == "iteration":
            # Processor time, since another program that takes the processor away is no part of a call.
            results.setdefault(entry["name"].replace("/threads:", "/"), []).append(entry["cpu_time"])
    return results


def two_threads(static, rounds, alone):
    """The quiet ones of rounds with two threads, and more until there are enough, or too many.

    Whatever two threads have between them shows only while both processors are theirs. So a round counts in which two threads
    that have nothing between them, with a counter each, take what one takes, `alone` ns. Where there are too few, those that
    come closest.
    """

    def beside_each_other(found):
        return max(found["counter/apart/2"])

    while sum(beside_each_other(found) <= QUIET * alone for found in rounds) < QUIET_ROUNDS and len(rounds) < MOST_ROUNDS:
        rounds.append(run(static, "threads:2$", SECONDS_OF_TWO))
    return sorted(rounds, key=beside_each_other)[:QUIET_ROUNDS]


def measure(build):
    """Results by `static/counter/1/ours` and the like: how it is linked, what, how many threads, who."""
    static, shared = build / "tests/bench/bench_hot_calls", build / "tests/bench/bench_hot_calls_shared"
    results, of_two = {}, []

    def add(how, found):
        for name, values in found.items():
            what, who, rest = name.split("/", 2)
            results.setdefault(f"{how}/{what}/{rest}/{who}", []).extend(values)

    for _ in range(ROUNDS):
        add("static", run(static, "threads:1$"))
        of_two.append(run(static, "threads:2$", SECONDS_OF_TWO))
        add("shared", run(shared, "(counter|counter by whole)/(ours|fetch_add)/threads:1$"))
        add("disabled", run(static, "ours.*threads:1$", PERSIA_METRICS_ENABLED="0"))
    for found in two_threads(static, of_two, min(results["static/counter/1/ours"])):
        add("static", found)
    return results
