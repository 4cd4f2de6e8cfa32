"""How the cost of a collection grows with each dimension of a job: its exponents."""

import json
import math
import statistics
import subprocess

# The exponent is that of the last doublings, where nothing constant hides growth.
DOUBLINGS = 4


def dimensions(program):
    """The largest size of each dimension, by its name."""
    lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    return {name: int(cap) for name, cap in (line.split() for line in lines)}


def measure(build):
    """The exponents, by `growth/series/time` and `growth/series/memory`; seconds and bytes, by `growth/series/time/1024`."""
    program = build / "tests/bench/bench_growth"
    results = {}
    for name, cap in dimensions(program).items():
        points = {"time": [], "memory": []}
        for size in (cap >> i for i in range(DOUBLINGS + 1)):
            answer = json.loads(subprocess.run([program, name, str(size)], check=True, capture_output=True, text=True).stdout)
            for what, value in (("time", answer["seconds"]), ("memory", answer["peak_bytes"])):
                results[f"growth/{name}/{what}/{size}"] = [value]
                points[what].append((math.log(size), math.log(max(value, 1e-9))))
        for what, found in points.items():
            results[f"growth/{name}/{what}"] = [statistics.linear_regression([x for x, _ in found], [y for _, y in found]).slope]
    return results
