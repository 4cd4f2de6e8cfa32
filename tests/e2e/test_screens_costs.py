"""What the page and `top` take of memory, with smaller jobs than in `./run bench`, which also holds their times to limits."""

import json
import subprocess
import sys

from conftest import BUILD, ROOT, environment

def measure(program, *sizes):
    command = [sys.executable, ROOT / "tests/bench" / program, *map(str, sizes)]
    answer = subprocess.run(command, env=environment(PERSIA_BUILD_DIR=str(BUILD)), capture_output=True, text=True, timeout=240)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout.splitlines()[-1])


def test_the_page_of_a_large_job_is_small():
    costs = measure("page_costs.py", 200, 200, 10)
    assert costs["task processor"] > 0
    assert costs["memory"] < 100


def test_top_of_many_agents_is_small():
    costs = measure("top_costs.py", 30, 3)
    assert min(costs["delay"]) > 0
    assert costs["memory"][0] < 64
