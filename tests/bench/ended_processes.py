"""Whether a collection costs more after 10,000 processes have ended than after ten: see ended_processes.cc."""

import json
import subprocess

MANY = 10_000


def measure(build):
    command = [build / "tests/bench/bench_ended_processes", build / "tests/chaos/worker/chaos_worker", "10", str(MANY), "--json"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    few, many = json.loads(answer.stdout)
    return {"ended/10/ours": few, f"ended/{MANY}/ours": many}
