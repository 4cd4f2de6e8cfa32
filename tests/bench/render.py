"""A whole collection, from the workers' memory to text, compared with prometheus-cpp's, and its growth."""

import json
import math
import statistics
import subprocess

REPETITIONS = 5


def measure(build):
    """ns of processor time a line, by `render/100000/4/ours`: series, processes, library; and allocations of a collection."""
    bench = build / "tests/bench"
    command = [bench / "bench_render", bench / "bench_worker", f"--benchmark_repetitions={REPETITIONS}", "--benchmark_min_time=0.1"]
    command += ["--benchmark_enable_random_interleaving=true", "--benchmark_format=json"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    results = {}
    for entry in json.loads(answer.stdout)["benchmarks"]:
        if entry["run_type"] == "iteration":
            _, who, size = entry["name"].split("/", 2)
            results.setdefault(f"render/{size}/{who}", []).append(entry["cpu_time"] * 1e6 / entry["lines"])
            results.setdefault(f"allocations/{size}/{who}", []).append(entry["allocations"])
    for name, sizes in (("series", (1_000, 10_000, 100_000, 1_000_000)), ("processes", (1, 10, 100))):
        points = []
        for size in sizes:
            series, processes = (size, 4) if name == "series" else (100_000, size)
            ns_a_line = statistics.median(results[f"render/{series}/{processes}/ours"])
            points.append((math.log(size), math.log(ns_a_line * series)))
        results[f"exponent/{name}"] = [slope(points)]
    return results


def slope(points):
    """The exponent of growth: the slope of the best straight line through the logarithms."""
    return statistics.linear_regression([x for x, _ in points], [y for _, y in points]).slope
