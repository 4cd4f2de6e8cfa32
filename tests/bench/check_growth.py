"""Holds a collection to linear growth, by counting instructions and bytes, which are the same in each run.

usage: check_growth.py BENCH_GROWTH DIMENSION
"""

import json
import math
import re
import subprocess
import sys

# The exponent of growth over a factor of four. n log n at these sizes is about 1.1.
MOST_INSTRUCTIONS = 1.15
MOST_BYTES = 1.1


def counted(program, dimension, size):
    """Instructions and the highest number of live bytes of the measured part."""
    run = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=Measured", program, dimension, str(size), "once"],
        check=True, capture_output=True, text=True)
    return int(re.search(r"Collected : (\d+)", run.stderr).group(1)), json.loads(run.stdout)["peak_bytes"]


def main():
    program, dimension = sys.argv[1:]
    caps = dict(line.split() for line in subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines())
    cap = int(caps[dimension])
    large = cap if cap < 1024 else cap // 4
    small = large // 4
    before, after = counted(program, dimension, small), counted(program, dimension, large)
    for what, most, a, b in (("instructions", MOST_INSTRUCTIONS, before[0], after[0]), ("bytes", MOST_BYTES, before[1], after[1])):
        exponent = math.log(b / a) / math.log(large / small)
        print(f"{dimension} from {small} to {large}: {a:,} to {b:,} {what}, exponent {exponent:.3f} (at most {most})")
        assert exponent <= most, f"{what} grow faster than linearly with {dimension}"


if __name__ == "__main__":
    main()
