"""The page's section on who waits for whom, in a real browser: a straggler, and a rank that hangs."""

import os
import re
import signal

from servers import wait_until

RANKS = """
import multiprocessing, os, time

def train(rank, barrier, slow):
    os.environ["REPLICA_INDEX"] = str(rank)
    from persia_metrics import phase, set_step
    step = 0
    while True:
        step += 1
        set_step(step)
        with phase("data"):
            time.sleep(0.04 + (slow.value if rank == 1 else 0))
        with phase("forward"):
            time.sleep(0.04)
        with phase("sync"):
            barrier.wait()

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    barrier, slow = context.Barrier(3), context.Value("d", 0.08)
    ranks = [context.Process(target=train, args=(rank, barrier, slow), daemon=True) for rank in range(3)]
    for rank in ranks:
        rank.start()
    print(f"pid {ranks[2].pid}")
    input()
    slow.value = 0
    input()
"""
VERDICTS = "return [...document.querySelectorAll('#health .reason')].map((button) => button.innerText)"
TOPS = "return ['#health', '#waits', '#tiles-job', '#sections'].map((selector) => document.querySelector(selector).getBoundingClientRect().top)"
BARS = """return [...document.querySelectorAll('#waits-ranks tr')].map((row) => [
  row.querySelector('th').innerText, row.querySelector('.sync').getBoundingClientRect().width / row.querySelector('.step').getBoundingClientRect().width])"""


def test_the_page_says_who_waits_for_whom(job, browse):
    agent = job.agent("--hang-after=1")
    launcher = job.python(RANKS)
    launcher.wait_for("pid")
    pid = int(re.search(r"pid (\d+)", launcher.output())[1])
    browser = browse(agent.url)

    def says(pattern):
        return any(re.fullmatch(pattern, text) for text in browser.run(VERDICTS))

    straggler = r"trainer rep_1: [\d.]+ m?s longer in data than the others in each step of [\d.]+ m?s; 2 others wait for it in sync"
    wait_until(lambda: says(straggler), "the straggler")

    def waits_least():
        bars = browser.run(BARS)
        return len(bars) == 3 and bars[0][0] == "rep_1" and bars[0][1] < 0.25 < min(part for _, part in bars[1:])

    wait_until(waits_least, "a bar for each rank, by how much of a step it waits")
    assert "data" in browser.text("#waits-legend")
    assert browser.text("#health-state") == "Running" and browser.run("return document.querySelector('#health').className") == "health bad"
    assert browser.run("return document.title").startswith("! 1 slow – ")
    assert "all workers are well" not in browser.text("#health")
    assert browser.text("#waits-count") == "rep_1 holds the others up"
    assert browser.run(TOPS) == sorted(browser.run(TOPS)), "the verdict is followed by the bars, the tiles and the charts"
    assert re.search(r"^rep_1 is slower in data, by \d+ % of a step$", browser.text("#tile-speed .detail"), re.M)
    browser.run("document.querySelector('#health .reason').click()")
    assert browser.text("#focus-name") == "trainer rep_1"
    launcher.go()
    wait_until(lambda: browser.run(VERDICTS) == [], "the verdict to be taken back")
    browser.wait_for("return document.querySelector('#folded #waits') !== null", "the bars below the charts again")
    assert not browser.run("return document.querySelector('#waits').open")

    os.kill(pid, signal.SIGSTOP)
    hang = r"trainer rep_2 hangs: stopped by a signal (in data|in forward|in sync|outside of its phases) since step \d+, \d+ s; 2 others wait in sync"
    wait_until(lambda: says(hang), "the hang")
    assert browser.text("#health-more").startswith("Look at: ")
    assert not browser.run("return document.querySelector('#waits').checkVisibility()"), "the steps of before the hang"
    assert "equally fast" not in browser.text("#tile-speed")
    os.kill(pid, signal.SIGCONT)
    wait_until(lambda: browser.run(VERDICTS) == [], "the end of the hang")
    assert browser.complaints() == []
    launcher.go()
