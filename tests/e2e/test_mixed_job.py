"""One job of Python and C++ processes under one agent, whose rules change at run time: every sum is exact."""

import os

from conftest import PYTHON, PYTHON_PACKAGE, WORKER
from servers import fetch, wait_until

# Four Python processes, two forked and two spawned, and two of C++; each adds to one counter and one stream. They continue when the test tells them.
JOB = """
import multiprocessing
import os
import subprocess
import sys

import persia_metrics.torchelastic.metrics as metrics
from persia_metrics import Counter

def work(rank, begun, go_on):
    os.environ["RANK"] = str(rank)
    steps = Counter("mixed", "steps", "Steps.")
    stream = metrics.getStream(group="mixed")
    for half in range(2):
        for _ in range(10_000):
            steps.inc()
            stream.add_value("step.duration", 0.25)
        if half == 0:
            begun.release()
            go_on.wait()

if __name__ == "__main__":
    processes = []
    begun = multiprocessing.get_context("spawn").Semaphore(0)
    go_on = multiprocessing.get_context("spawn").Event()
    for rank, method in enumerate(("fork", "fork", "spawn", "spawn")):
        context = multiprocessing.get_context(method)
        processes.append(context.Process(target=work, args=(rank, begun, go_on)))
        processes[-1].start()
    workers = [subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    def tell(line):
        for worker in workers:
            worker.stdin.write(line + "\\n")
            worker.stdin.flush()
            while worker.stdout.readline() != f"done {line}\\n":
                pass
    tell("count mixed steps 5000.5")
    for _ in processes:
        begun.acquire()
    open(sys.argv[2], "w").close()
    os.mkfifo(sys.argv[3])
    open(sys.argv[3]).read()
    go_on.set()
    tell("count mixed steps 5000.5")
    for worker in workers:
        worker.stdin.close()
        assert worker.wait() == 0
    for process in processes:
        process.join()
        assert process.exitcode == 0
"""

RULES = "mappings:\n- {{match: step.duration, group: mixed, name: step_seconds, type: {type}, {more}}}\n"


def test_sums_are_exact_over_languages_and_a_changed_rule(job, gateway, tmp_path):
    script, half, go_on, rules = (tmp_path / name for name in ("train.py", "half", "go_on", "mapping.yaml"))
    script.write_text(JOB)
    rules.write_text(RULES.format(type="counter", more="help: Time."))
    agent = job.exec(
        PYTHON,
        script,
        WORKER,
        half,
        go_on,
        flags=[f"--mapping-file={rules}", "--web.enable-lifecycle=true"],
        env={"PYTHONPATH": str(PYTHON_PACKAGE), "PERSIA_ROLE": "trainer"},
    )
    wait_until(lambda: half.exists() and go_on.exists(), "all processes to be half-way", 60)
    ranks = [f"rep_{rank}" for rank in range(4)]
    for rank in ranks:
        gateway.wait_for("step_seconds", 10_000 * 0.25, instance=rank)
    rules.write_text(RULES.format(type="histogram", more="buckets: [0.125, 0.25, 0.5]"))
    assert fetch(agent.url + "/-/reload", method="POST")[0] == 200
    for rank in ranks:
        gateway.wait_for("step_seconds_count", 10_000, instance=rank)
    with os.fdopen(os.open(go_on, os.O_WRONLY), "w"):
        pass
    assert agent.wait(60) == 0, agent.output()
    seen = gateway.metrics()
    steps = sum(value for (name, _), value in seen.items() if name == "mixed_steps")
    assert steps == 4 * 20_000 + 2 * 10_001
    for rank in ranks:
        assert seen.one("step_seconds_sum", instance=rank) == 20_000 * 0.25
        assert seen.one("step_seconds_bucket", instance=rank, le="0.125") == 0
        assert seen.one("step_seconds_bucket", instance=rank, le="0.25") == 20_000
        assert seen.one("step_seconds_bucket", instance=rank, le="+Inf") == 20_000
