"""The page of jobs that hang, end, restart or have many series, in a real browser."""

import os
import re
import signal

from page import CARD, newest, start_ranks, wait_for_points
from servers import wait_until

ROWS = "return [...document.querySelectorAll('#workers-body tr')].map((row) => row.className)"


def test_the_page_says_at_once_who_hangs_and_who_died(job, browse):
    agent = job.agent("--hang-after=2")
    stopped, other = job.worker(replica=2), job.worker(replica=10)
    for worker in (stopped, other):
        worker.tell("busy my_app steps_total")
    browser = browse(agent.url)
    wait_until(lambda: browser.run(ROWS) == ["up running", "up running"], "both")
    assert browser.text("#workers-body tr:first-child .instance") == "rep_2", "2 is before 10"
    assert browser.text("#health-state") == "Running" and not browser.run("return document.title").startswith("!")

    stopped.signal(signal.SIGSTOP)
    wait_until(lambda: browser.run(ROWS) == ["bad hung", "up running"], "the mark")
    assert browser.text("#workers-body tr:first-child .badge") == "hung"
    assert browser.text("#tile-workers .detail").startswith("1 hung")
    browser.wait_for("return document.querySelector('#health-state').textContent === 'Degraded'", "the banner")
    assert browser.text("#health-reasons .reason") == "trainer rep_2 hangs"
    assert browser.run("return document.title").startswith("! 1 hung – ")
    icon = browser.run("return document.querySelector('link[rel=icon]').href")

    stopped.signal(signal.SIGCONT)
    wait_until(lambda: browser.run(ROWS) == ["up running", "up running"], "the mark to go")
    other.kill()
    wait_until(lambda: browser.run(ROWS) == ["bad died", "up running"], "the end of the other, which comes first now")
    assert browser.text("#health-reasons .reason").startswith("trainer rep_10 died")
    assert re.search(r" at \d\d:\d\d:\d\d$", browser.text("#health-reasons li"))
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
    for pid in pids[:24]:
        os.kill(pid, signal.SIGKILL)
    os.kill(pids[27], signal.SIGSTOP)
    browser.wait_for("return document.title.startsWith('! 24 died, 1 hung – ')", "the numbers in the title")
    reasons = browser.run("return [...document.querySelectorAll('#health-reasons li')].map((each) => each.innerText)")
    assert len(reasons) == 6 and all(re.match(r"trainer rep_\d+ (died|hangs)", reason) for reason in reasons[:5])
    shown = sum("hangs" in reason for reason in reasons)
    assert reasons[5] == ("and 20 more died" if shown else "and 19 more died, 1 more hung")
    assert browser.run("return document.querySelector('#tile-workers').getBoundingClientRect().bottom < innerHeight"), "tiles on the first screen"
    browser.run("document.querySelector('#health-reasons li:last-child button').click()")
    in_view = "const { top } = document.querySelector('#workers').getBoundingClientRect(); return top >= 0 && top < innerHeight / 3"
    browser.wait_for(in_view, "the table of workers")
    # A click on a reason shows the charts of its worker.
    browser.resize(1400, 700)
    reason = browser.run("const button = document.querySelector('#health-reasons button'); button.click(); return button.textContent")
    in_view = f"const {{ top }} = {CARD}.getBoundingClientRect(); return top >= 0 && top < innerHeight / 2"
    browser.wait_for(in_view, "the first chart in view", "my_app_steps_total")
    assert browser.run("return document.querySelector('#focus').getBoundingClientRect().top >= document.querySelector('.bar').offsetHeight")
    assert reason.startswith(browser.text("#focus-name") + " ")


def test_the_slowest_rank_is_named(job, browse):
    start_ranks(job, [0.05, 0.05, 0.5, 0.05])
    agent = job.agent()  # whose first collection has all of them
    browser = browse(agent.url)
    browser.wait_for("return document.querySelector('#tile-slowest .value')?.textContent === 'rep_2'", "the slowest")
    assert re.fullmatch(r"trainer: [\d.]+ /s, the median is [\d.]+ /s", browser.text("#tile-slowest .detail"))
    assert "bad" in browser.run("return document.querySelector('#tile-slowest').className")
    rate = "return Number.parseFloat([...document.querySelectorAll('#workers-body tr')][arguments[0]].querySelector('[data-label=Rate]').textContent)"
    wait_until(lambda: 0 < browser.run(rate, 2) < 0.5 * browser.run(rate, 1), "the ranks' rates in the table")


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
    assert browser.run("return document.querySelector('#health').className") == "health bad"
    trouble = browser.run("return document.querySelector('link[rel=icon]').href")
    assert "my_app_steps_total" in browser.text("#sections"), "the old content stays"
    job.agent(f"--listen={agent.address}")
    browser.wait_for("return document.querySelector('#banner').hidden", "the page to continue")
    browser.wait_for("return document.querySelector('#health-state').textContent === 'Running'", "the job's state")
    assert not browser.run("return document.title").startswith("!")
    assert browser.run("return document.querySelector('link[rel=icon]').href") != trouble
    wait_for_points(browser, "my_app_steps_total", after=seen)


def test_lines_that_are_left_out_are_counted_and_can_be_shown(job, browse):
    agent = job.agent()
    worker = job.worker()
    for feat in range(15):
        worker.tell(f"count_feat my_app ids_total feature_{feat} 1")
    browser = browse(agent.url)
    wait_for_points(browser, "my_app_ids_total")
    more = f"return {CARD}.querySelector('.more').innerText"
    browser.wait_for(f"{more}.startsWith('12 of 15 shown')", "twelve of them", "my_app_ids_total")
    lines = f"return {CARD}.querySelectorAll('.line').length"
    assert browser.run(lines, "my_app_ids_total") == 12
    browser.find('[data-name="my_app_ids_total"] .more button').click()
    wait_until(lambda: browser.run(lines, "my_app_ids_total") == 15, "all of them")
    assert not browser.find('[data-name="my_app_ids_total"] .more').is_displayed()
