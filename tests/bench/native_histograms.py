"""The size and the cost of a series in its native and its classic form: see native_histograms.cc."""

import json
import subprocess

REPETITIONS = 7


def measure(build):
    """Of one series, by `native/remote write/bytes/native` or the like: form `native` or `classic`; `ns`, `bytes`, `compressed` bytes, `samples`."""
    command = [build / "tests/bench/bench_native_histograms", f"--benchmark_repetitions={REPETITIONS}", "--benchmark_min_time=0.05"]
    command += ["--benchmark_enable_random_interleaving=true", "--benchmark_format=json"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    results = {}
    for entry in json.loads(answer.stdout)["benchmarks"]:
        if entry["run_type"] != "iteration":
            continue
        path, form = entry["name"].split("/")
        for counter, name, scale in (("seconds", "ns", 1e9), ("bytes", "bytes", 1), ("compressed", "compressed", 1), ("samples", "samples", 1)):
            if counter in entry:
                results.setdefault(f"native/{path}/{name}/{form}", []).append(entry[counter] * scale)
    return results
