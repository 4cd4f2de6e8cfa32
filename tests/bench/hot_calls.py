"""The hot calls of the C++ library, with the static one, with the shared one, and with metrics disabled."""

import json
import subprocess
import tempfile

from jobs import clean_environment

ROUNDS = 6
REPETITIONS = 2
SECONDS = 0.01
REPETITIONS_OF_TWO = 4
SECONDS_OF_TWO = 0.05  # threads do not start at the same instant, and a part of it is each alone


def run(program, pattern, repetitions=REPETITIONS, seconds=SECONDS, **environment):
    """{name: [ns of processor time]} of one run of a Google Benchmark program."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        command = [program, f"--benchmark_filter={pattern}", f"--benchmark_repetitions={repetitions}", "--benchmark_format=json"]
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


def measure(build):
    """Results by names such as `static/counter/1/ours`: how it is linked, the call, the number of threads, the library."""
    static, shared = build / "tests/bench/bench_hot_calls", build / "tests/bench/bench_hot_calls_shared"
    results = {}

    def add(how, found):
        for name, values in found.items():
            what, who, rest = name.split("/", 2)
            results.setdefault(f"{how}/{what}/{rest}/{who}", []).extend(values)

    for _ in range(ROUNDS):
        add("static", run(static, "threads:1$"))
        add("static", run(static, "threads:2$", REPETITIONS_OF_TWO, SECONDS_OF_TWO))
        add("static", run(static, "threads:8$", REPETITIONS_OF_TWO, SECONDS_OF_TWO))
        add("shared", run(shared, "(counter|counter by whole)/ours/threads:1$"))
        add("disabled", run(static, "ours.*threads:1$", PERSIA_METRICS_ENABLED="0"))
    return results
