#!/usr/bin/python3
"""Takes `page.png`: the page of a job of four ranks, of which one is slow, in Chromium.

    PERSIA_BUILD_DIR=$PWD/build/release agent/web/picture.py

The ranks fit a line by the mean of their gradients. What a device would compute, they sleep.
"""

import contextlib
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "examples/demo")]

from browser import Browser  # noqa: E402
from conftest import AGENT, PYTHON, PYTHON_PACKAGE, environment  # noqa: E402
from servers import Process, fetch, free_port, wait_until  # noqa: E402

SECONDS = 150  # of history
WIDTH, HEIGHT = 1400, 855
TRAINS = """
import multiprocessing, os, random, time

RANKS, SIZE, STEPS, SLOW = 4, 16, 1000, 2

def train(rank, barrier, gradients):
    os.environ.update(RANK=str(rank), PERSIA_ROLE="trainer")
    from persia_metrics import Gauge, Histogram, count_samples, count_steps, phase, set_step, set_total_steps
    loss = Gauge("my_app", "loss", "Training loss.")
    norm = Gauge("my_app", "gradient_norm", "Length of the mean gradient.")
    load = Histogram("my_app", "load_seconds", "Time to load a batch.", bounds=[0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1])
    noise = random.Random(rank)
    wanted, weights = [i / SIZE for i in range(SIZE)], [0.0] * SIZE
    set_total_steps(STEPS)
    barrier.wait()
    for step in range(STEPS):
        set_step(step)
        with phase("data"), load.time():
            time.sleep(0.012 + 0.004 * noise.random() + (0.03 if rank == SLOW else 0))
            batch = [[noise.gauss(0, 1) for _ in range(SIZE)] for _ in range(8)]
            truth = [sum(w * x for w, x in zip(wanted, row)) + noise.gauss(0, 0.2) for row in batch]
        with phase("forward"):
            errors = [sum(w * x for w, x in zip(weights, row)) - y for row, y in zip(batch, truth)]
            time.sleep(0.14)
        with phase("backward"):
            gradients[rank * SIZE:(rank + 1) * SIZE] = [sum(e * row[i] for e, row in zip(errors, batch)) / 8 for i in range(SIZE)]
            time.sleep(0.24)
        with phase("sync"):
            barrier.wait()
            mean = [sum(gradients[r * SIZE + i] for r in range(RANKS)) / RANKS for i in range(SIZE)]
            barrier.wait()
        with phase("optimizer"):
            weights = [w - 0.003 * g for w, g in zip(weights, mean)]
            time.sleep(0.03)
        loss.set(sum(e * e for e in errors) / 8)
        norm.set(sum(g * g for g in mean) ** 0.5)
        count_samples(8)
        count_steps()

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    barrier, gradients = context.Barrier(RANKS), context.Array("d", RANKS * SIZE)
    ranks = [context.Process(target=train, args=(rank, barrier, gradients)) for rank in range(RANKS)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
"""


def take(directory, browser):
    (directory / "train.py").write_text(TRAINS)
    address = f"127.0.0.1:{free_port()}"
    with contextlib.ExitStack() as running:
        segments = running.enter_context(tempfile.TemporaryDirectory(prefix="persia-picture-", dir="/dev/shm"))
        flags = ["--job=line_fit", "--gateway=off", f"--listen={address}", f"--metrics-dir={segments}", f"--report={directory}/report.html"]
        command = [AGENT, "exec", *flags, "--", PYTHON, directory / "train.py"]
        running.enter_context(Process(command, directory / "job.log", env=environment(PYTHONPATH=str(PYTHON_PACKAGE))))
        wait_until(lambda: fetch(f"http://{address}/-/ready")[0] == 200, "the agent")
        browser.new_tab(WIDTH, HEIGHT)
        browser.open(f"http://{address}/")
        wait_until(lambda: "longer in data" in (browser.text("#health-worst") or ""), "the verdict", SECONDS)
        time.sleep(SECONDS)
        browser.screenshot(Path(__file__).parent / "page.png")


def main():
    with tempfile.TemporaryDirectory() as directory:
        browser = Browser(Path(directory) / "browser.log")
        try:
            take(Path(directory), browser)
        finally:
            browser.stop()


main()
