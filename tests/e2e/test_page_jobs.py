"""The page of jobs that hang, end, restart or have many series, in a real browser."""

import json
import os
import re
import signal

from page import CARD, newest, start_ranks, wait_for_points
from servers import fetch, wait_until

MANY_RANKS = """
import os, sys
from persia_metrics import Gauge
pids = []
ready, counted = os.pipe()
go, stop = os.pipe()
for rank in range(16):
    pids.append(os.fork())
    if pids[-1] == 0:
        os.environ["REPLICA_INDEX"] = str(rank)
        Gauge("my_app", "loss", "Training loss.").set(9 if rank == 15 else 1)
        os.write(counted, b".")
        os.close(stop)
        os.read(go, 1)
        os._exit(0)
for _ in pids:
    os.read(ready, 1)
print("counted", flush=True)
sys.stdin.readline()
os.close(stop)
"""
BECOMES_NAN = """
from persia_metrics import Gauge, set_step
loss = Gauge("my_app", "loss", "Training loss.")
set_step(300)
loss.set(0.5)
print("number", flush=True)
input()
set_step(301)
loss.set(float("nan"))
input()
"""
ROWS = "return [...document.querySelectorAll('#workers-body tr')].map((row) => row.className)"


def test_the_page_says_at_once_who_hangs_and_who_died(job, browse):
    agent = job.agent("--hang-after=2")
    stopped, other = job.worker(replica=2), job.worker(replica=10)
    for worker in (stopped, other):
        worker.tell("busy my_app steps_total")
    browser = browse(agent.url)
    browser.run("document.querySelector('#workers').open = true")
    wait_until(lambda: browser.run(ROWS) == ["up running", "up running"], "both")
    assert browser.text("#workers-body tr:first-child .instance") == "rep_2", "2 is before 10"
    assert browser.text("#health-state") == "Running" and not browser.run("return document.title").startswith("!")

    stopped.signal(signal.SIGSTOP)
    wait_until(lambda: browser.run(ROWS) == ["bad hung", "up running"], "the mark")
    assert browser.text("#workers-body tr:first-child .badge") == "hung"
    assert browser.text("#tile-workers .detail").startswith("1 hung")
    browser.wait_for("return document.querySelector('#health-state').textContent === 'Degraded'", "the banner")
    assert browser.text("#health-worst .reason") == "trainer rep_2 hangs; it is stopped by a signal"
    assert browser.run("return document.title").startswith("! 1 hung – ")
    icon = browser.run("return document.querySelector('link[rel=icon]').href")

    stopped.signal(signal.SIGCONT)
    wait_until(lambda: browser.run(ROWS) == ["up running", "up running"], "the mark to go")
    other.kill()
    wait_until(lambda: browser.run(ROWS) == ["bad died", "up running"], "the end of the other, which comes first now")
    assert browser.text("#health-worst .reason") == "trainer rep_10 died: SIGKILL", "without its circumstances"
    assert re.search(r" at \d\d:\d\d:\d\d$", browser.text("#health-worst"))
    assert browser.text("#health-more").startswith("(the kernel "), "the rest of it"
    assert browser.run("return document.title").startswith("! 1 died – ")
    stopped.kill()
    job.worker(replica=2).tell("busy my_app steps_total")
    job.worker(replica=10).tell("busy my_app steps_total")
    browser.wait_for("return document.querySelector('#health-state').textContent === 'Running'", "the replacements")
    assert browser.run("return document.querySelector('link[rel=icon]').href") != icon, "an icon without trouble"


def test_a_click_on_a_worker_filters_all_charts(job, browse):
    agent = job.agent()
    for replica in (0, 1):
        worker = job.worker(replica=replica)
        worker.tell("busy my_app steps_total")
        worker.tell("set my_app loss 0.5")
    browser = browse(agent.url)
    lines = """
    const cards = [...document.querySelectorAll('[data-name^=my_app]')].map(({ card }) => card);
    return cards.map((card) => new Set(card.lines.map((line) => line.set.labels.instance)).size).join(' ')"""
    wait_until(lambda: browser.run(lines) == "2 2", "both workers in both charts")
    browser.run("document.querySelectorAll('#workers-body button.worker')[1].click()")
    wait_until(lambda: browser.run(lines) == "1 1", "one worker")
    assert browser.text("#focus-name") == "trainer rep_1" and "worker=trainer%2Frep_1" in browser.run("return location.search")
    browser.run("location.reload()")
    wait_until(lambda: browser.run(lines) == "1 1" and browser.text("#focus-name") == "trainer rep_1", "the same after a reload")
    browser.run("document.querySelector('#unfocus').click()")
    wait_until(lambda: browser.run(lines) == "2 2", "all workers")
    assert browser.run("return location.search") == ""


def test_workers_are_sorted_and_filtered(job, browse):
    agent = job.agent()
    for replica in (1, 2, 10):
        job.worker(replica=replica).tell("count my_app batches 1")
    browser = browse(agent.url)
    browser.run("document.querySelector('#workers').open = true")
    names = "return [...document.querySelectorAll('#workers-body .instance')].map((each) => each.textContent)"
    wait_until(lambda: browser.run(names) == ["rep_1", "rep_2", "rep_10"], "the workers in natural order")
    sort = "const head = document.querySelectorAll('#workers-head th')[arguments[0]]; head.firstChild.click(); return head.ariaSort"
    assert [browser.run(sort, 0), browser.run(sort, 0)] == ["ascending", "descending"]
    assert browser.run(names) == ["rep_10", "rep_2", "rep_1"]
    assert browser.run(sort, 3) == "ascending"
    pids = [int(pid) for pid in browser.run("return [...document.querySelectorAll('#workers-body [data-label=Pid]')].map((each) => each.textContent)")]
    assert pids == sorted(pids)
    enter = "const field = document.querySelector('#workers-filter'); field.value = arguments[0]; field.dispatchEvent(new Event('input'))"
    browser.run(enter, "rep_10")
    assert browser.run(names) == ["rep_10"] and browser.text("#workers-count") == "1 of 3"


def test_workers_fold_and_stay_folded(job, browse):
    agent = job.agent()
    job.worker(replica=1)
    browser = browse(agent.url)
    browser.wait_for("return document.querySelector('#workers').checkVisibility()", "the table")
    browser.find("#workers summary").click()
    wait_until(lambda: browser.text("#workers-body [data-label=CPU]") == "0 %", "the share of a worker that waits")
    browser.find("#workers summary").click()
    visible = "return document.querySelector('#workers-body').checkVisibility()"
    assert not browser.run(visible)
    job.worker(replica=2)
    wait_until(lambda: browser.text("#workers-count") == "2", "the number of workers beside the title")
    assert not browser.run(visible)
    browser.find("#workers summary").click()
    assert browser.run(visible) and len(browser.run(ROWS)) == 2


def test_many_deaths_hide_neither_their_number_nor_a_hang(job, browse):
    agent = job.agent("--hang-after=2")
    pids = start_ranks(job, [0.1] * 30)
    browser = browse(agent.url, height=900)
    wait_until(lambda: browser.text("#tile-workers .value") == "30 of 30 up", "all ranks")

    def is_judged(rank):  # from the third change on, a push interval after the second one, when it is called running
        return rank["state"] == "running" and rank["last_change_ms"] - rank["state_since_ms"] > 500

    wait_until(lambda: all(map(is_judged, json.loads(fetch(agent.url + "/api/v1/status")[1])["workers"])), "all to be judged")
    for pid in pids[:24]:
        os.kill(pid, signal.SIGKILL)
    os.kill(pids[27], signal.SIGSTOP)
    browser.wait_for("return document.title.startsWith('! 24 died, 1 hung – ')", "the numbers in the title")
    reasons = browser.run("return [...document.querySelectorAll('#health-reasons li')].map((each) => each.innerText)")
    reasons.insert(0, browser.text("#health-worst"))
    assert len(reasons) == 6 and all(re.match(r"trainer rep_\d+ (died|hangs)", reason) for reason in reasons[:5])
    shown = sum("hangs" in reason for reason in reasons)
    assert reasons[5] == ("and 20 more died" if shown else "and 19 more died, 1 more hung")
    assert browser.run("return document.querySelector('#tile-workers').getBoundingClientRect().bottom < innerHeight"), "tiles on the first screen"
    browser.run("document.querySelector('#health-reasons li:last-child button').click()")
    in_view = "const { top } = document.querySelector('#workers').getBoundingClientRect(); return top >= 0 && top < innerHeight / 3"
    browser.wait_for(in_view, "the table of workers")
    wait_until(lambda: browser.run(ROWS) == ["bad died"] * 8, "the worst eight")
    browser.find("#workers-all").click()
    wait_until(lambda: len(browser.run(ROWS)) == 30, "all of them")
    # A click on a reason shows the charts of its worker.
    browser.resize(1400, 700)
    reason = browser.run("const button = document.querySelector('#health-worst button'); button.click(); return button.textContent")
    in_view = f"const {{ top }} = {CARD}.getBoundingClientRect(); return top >= 0 && top < innerHeight / 2"
    browser.wait_for(in_view, "the first chart in view", "my_app_steps_total")
    assert browser.run("return document.querySelector('#focus').getBoundingClientRect().top >= document.querySelector('.bar').offsetHeight")
    assert reason.startswith(browser.text("#focus-name") + " ")


def test_the_slowest_rank_is_named(job, browse):
    start_ranks(job, [0.05, 0.05, 0.5, 0.05])
    agent = job.agent()  # whose first collection has all of them
    browser = browse(agent.url)
    browser.wait_for("return document.querySelector('#tile-speed .detail')?.textContent.includes('rep_2')", "the slowest")
    lines = browser.text("#tile-speed .detail").split("\n")
    assert re.fullmatch(r"rep_2 is slower: [\d.]+ /s, the median is [\d.]+ /s", lines[-1]), lines
    assert "bad" in browser.run("return document.querySelector('#tile-speed').className")
    browser.run("document.querySelector('#workers').open = true")
    rate = "return Number.parseFloat([...document.querySelectorAll('#workers-body tr')][arguments[0]].querySelector('[data-label=Rate]').textContent)"
    wait_until(lambda: 0 < browser.run(rate, 0) < 0.5 * browser.run(rate, 1), "the ranks' rates in the table, the slow one first")
    assert browser.text("#workers-body tr:first-child .instance") == "rep_2"
    assert browser.text("#workers-body tr:first-child .badge") == "slow"


def test_the_page_goes_on_after_a_restart_of_the_agent(job, browse):
    agent = job.agent()
    job.worker().tell("busy my_app steps_total")
    browser = browse(agent.url)
    wait_for_points(browser, "my_app_steps_total")
    seen = newest(browser, "my_app_steps_total")
    agent.kill()
    browser.wait_for("return document.querySelector('#banner').checkVisibility()", "the banner")
    assert re.match(r"The agent has not answered since \d\d:\d\d:\d\d", browser.text("#banner"))
    assert browser.run("return document.title").startswith("! agent gone – ")
    assert browser.text("#health-state") == "Agent gone" and "The job was running at" in browser.text("#health-text")
    assert not browser.find("#health-kept").is_displayed()
    assert browser.run("return document.querySelector('#health').className") == "health bad"
    trouble = browser.run("return document.querySelector('link[rel=icon]').href")
    assert "my_app_steps_total" in browser.text("#sections"), "the old content stays"
    job.agent(f"--listen={agent.address}")
    browser.wait_for("return document.querySelector('#banner').hidden", "the page to continue")
    browser.wait_for("return document.querySelector('#health-state').textContent === 'Running'", "the job's state")
    assert not browser.run("return document.title").startswith("!")
    assert browser.run("return document.querySelector('link[rel=icon]').href") != trouble
    wait_for_points(browser, "my_app_steps_total", after=seen)


def test_many_series_are_a_band_with_outliers_by_name_and_a_heat_map(job, browse):
    agent = job.agent()
    ranks = job.python(MANY_RANKS)
    ranks.wait_for("counted")
    browser = browse(agent.url)
    name = "my_app_loss"
    wait_for_points(browser, name)
    shown = f"[...{CARD}.querySelectorAll('.line')].filter((line) => line.checkVisibility())"
    lines = f"return {shown}.map((line) => line.innerText.split(/\\s+/).slice(0, -1).join(' '))"
    wait_until(lambda: browser.run(lines, name) == ["min", "median", "max", "rep_15"], "a band, and the rank that lies apart")
    values = f"return {CARD}.card.rows.at(-1).slice(1)"
    wait_until(lambda: browser.run(values, name) == [1, 1, 9, 9], "the edges and the rank's values")
    assert "16 series" in browser.run(f"return {CARD}.querySelector('.kind').textContent", name)
    # A dark stripe in the last of sixteen rows, and in no other.
    stripe = f"""
    const canvas = {CARD}.querySelector('canvas.heat');
    // From a copy: the browser warns of repeated reads of a canvas that the GPU draws.
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', {{ willReadFrequently: true }});
    copy.drawImage(canvas, 0, 0);
    const {{ data }} = copy.getImageData(Math.floor(0.8 * canvas.width), 0, 1, canvas.height);
    return Array.from({{ length: 16 }}, (_, row) => data[4 * Math.floor(((row + 0.5) * canvas.height) / 16) + 3] > 128);"""
    wait_until(lambda: browser.run(stripe, name) == [False] * 15 + [True], "the stripe of rep_15: rows in natural order")
    browser.run(f"{CARD}.querySelector('.more button').click()", name)
    some = ["rep_0", "rep_1", "rep_2", "rep_3", "rep_15"]
    wait_until(lambda: browser.run(lines, name) == some, "a line for each, of which the one that lies apart is named, and the first")
    rest = browser.find(f'[data-name="{name}"] .rest button')
    assert rest.text == "and 11 more"
    rest.click()
    assert browser.run(lines, name) == [f"rep_{rank}" for rank in range(16)], "in natural order"
    assert browser.run(f"const {{ scrollHeight, clientHeight }} = {CARD}.querySelector('.legend'); return scrollHeight <= clientHeight", name)
    rest.click()
    assert browser.run(lines, name) == some and rest.text == "and 11 more"
    assert not browser.run(f"return {CARD}.querySelector('canvas.heat').checkVisibility()", name)
    # A click on a row of the heat map shows its rank alone.
    browser.run(f"{CARD}.querySelector('.more button').click()", name)
    browser.wait_for(f"return {CARD}.querySelector('canvas.heat').checkVisibility()", "the heat map again", name)
    browser.run(f"{CARD}.card.pick(2)", name)
    assert browser.text("#focus-name") == "trainer rep_2"
    assert browser.complaints() == []
    ranks.succeed()


def test_a_value_that_becomes_nan_is_the_headline(job, browse):
    agent = job.agent()
    worker = job.python(BECOMES_NAN)
    worker.wait_for("number")
    browser = browse(agent.url)
    wait_for_points(browser, "my_app_loss")
    assert browser.run("return document.querySelector('#health').className") == "health good"
    worker.go()
    browser.wait_for("return document.querySelector('#health-worst').textContent.startsWith('my_app_loss is NaN')", "the headline")
    assert re.fullmatch(r"my_app_loss is NaN on trainer rep_0, since step 301 at \d\d:\d\d:\d\d", browser.text("#health-worst"))
    assert browser.run("return document.querySelector('#health').className") == "health bad"
    assert browser.run("return document.title").startswith("! 1 NaN – ")
    told = f"return {CARD}.querySelector('p.odd').innerText"
    browser.wait_for(f"{told}.startsWith('NaN since ')", "the chart", "my_app_loss")
    browser.wait_for(f"return {CARD}.querySelector('.line b').innerText === 'NaN'", "the newest value", "my_app_loss")
    wait_until(lambda: any(event["name"] == "value_not_finite" and event["metadata"]["step"] == 301 for event in events(agent)), "the event")
    assert "my_app_loss is NaN on trainer rep_0, since step 301" in agent.output()
    wait_until(lambda: agent.metrics().one("persia_gauge_nan_series", instance="rep_0", gauge="my_app_loss") == 1, "the metric")
    worker.succeed()


def events(agent):
    return json.loads(fetch(f"{agent.url}/api/v1/events")[1])["events"]
