"""How far a job is, and when it ends: on the agent's page, in its API and in `top`."""

import json
import re
import subprocess

import pytest
from conftest import AGENT, environment
from servers import fetch, wait_until

RANKS = """
import multiprocessing, os, time

def train(rank, over):
    os.environ["REPLICA_INDEX"] = str(rank)
    from persia_metrics import count_samples, count_steps, count_tokens, set_step, set_total_steps
    set_total_steps(100_000)
    step = 1000  # from a checkpoint
    while not over.is_set():
        time.sleep(0.02 * (1 + 3 * rank))
        step += 1
        set_step(step)
        count_steps()
        count_samples(32)
        count_tokens(512)

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    over = context.Event()
    ranks = [context.Process(target=train, args=(rank, over)) for rank in range(2)]
    for rank in ranks:
        rank.start()
    input()
    over.set()
    for rank in ranks:
        rank.join()
"""


def test_python_counts_progress(run_python):
    run_python(
        """
from persia_metrics import count_samples, count_steps, count_tokens, read_value, set_total_steps

def value(name):
    return read_value("persia_progress", name)

assert value("steps_total") is None
count_steps()
count_steps(3)
count_samples(64)
count_tokens(2**40)
set_total_steps(10)
assert (value("steps_total"), value("samples_total"), value("tokens_total"), value("planned_steps")) == (4, 64, 2**40, 10)
assert read_value("persia_phase", "step") == 4
for wrong, error in ((lambda: count_steps(-1), OverflowError), (lambda: count_samples("a"), TypeError), (lambda: count_steps(1, 2), TypeError),
                     (lambda: set_total_steps(1.5), TypeError), (lambda: count_tokens(), TypeError)):
    try:
        wrong()
        raise SystemExit(f"no {error.__name__}")
    except error:
        pass
assert value("steps_total") == 4
"""
    )


def test_the_job_ends_with_its_slower_rank(job, browse):
    agent = job.agent()
    ranks = job.python(RANKS)

    def progress():
        return json.loads(fetch(agent.url + "/api/v1/status")[1])["progress"] or {}

    wait_until(lambda: (agent.metrics().one("persia_progress_steps_total", instance="rep_1") or 0) > 20, "steps of both ranks")
    # A rank that joined after the first of the collections that are kept has a rate only once that one is older than 30 s.
    wait_until(lambda: (progress().get("remaining_seconds") or 0) > 0 and progress()["samples_per_second"], "a remaining time", 90)
    now = progress()
    # Rank 1 makes at most 12.5 steps per second, rank 0 at most 50.
    assert 1000 < now["step"] < 50_000 and now["planned_steps"] == 100_000
    assert now["remaining_seconds"] > (100_000 - now["step"]) / 20
    assert now["samples_per_second"] == pytest.approx(now["tokens_per_second"] / 16)
    assert 32 * 2 < now["samples_per_second"] < 32 * 90
    assert agent.metrics().one("persia_progress_planned_steps", instance="rep_0") == 100_000

    command = [AGENT, "top", "--once", agent.address]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=30, env=environment(COLUMNS="200"), check=True).stdout
    assert re.search(r"step \d\.\d+k of 100k, \d+h\d\dm left", shown), shown
    browser = browse(agent.url)
    assert re.fullmatch(r"\d,\d{3} of 100,000", browser.text("#tile-progress .value"))
    detail = browser.text("#tile-progress .detail")
    assert re.fullmatch(r"[1-9] %, \d+ (min|h) left", detail), detail
    assert 0.01 <= browser.run("return document.querySelector('#tile-progress progress').value") < 0.1
    # What counts most is the value; each speed stands once.
    assert re.fullmatch(r"[\d.,]+( k)? samples/s", browser.text("#tile-speed .value"))
    detail = browser.text("#tile-speed .detail")
    assert re.match(r"[\d.,]+( k)? tokens/s, [\d.,]+ steps/s", detail) and "samples" not in detail, detail
    ranks.succeed()
    wait_until(lambda: progress().get("remaining_seconds") is None, "no remaining time without ranks")
