"""The page of jobs that hang, end, restart or have many series, in a real browser."""

import re
import signal

import pytest
from page import CARD, newest, wait_for_points
from servers import wait_until

pytestmark = pytest.mark.long


def test_a_stopped_worker_is_marked_as_hung_and_no_other(job, browse):
    agent = job.agent()
    stopped, other = job.worker(replica=0), job.worker(replica=1)
    for worker in (stopped, other):
        worker.tell("busy my_app steps_total")
    browser = browse(agent.url)
    mood = "return [...document.querySelectorAll('#workers-body tr')].map((row) => row.className)"
    wait_until(lambda: browser.run(mood) == ["up", "up"], "both")
    stopped.signal(signal.SIGSTOP)
    wait_until(lambda: browser.run(mood) == ["hung", "up"], "the mark")
    assert "hung" in browser.text("#workers-body tr:first-child .badge")
    assert browser.text("#tile-workers .detail") == "1 hung"
    stopped.signal(signal.SIGCONT)
    wait_until(lambda: browser.run(mood) == ["up", "up"], "the mark to go")
    other.kill()
    wait_until(lambda: browser.run(mood) == ["up", "ended"], "the end of the other")


def test_the_page_goes_on_after_a_restart_of_the_agent(job, browse):
    agent = job.agent()
    job.worker().tell("busy my_app steps_total")
    browser = browse(agent.url)
    wait_for_points(browser, "my_app_steps_total")
    seen = newest(browser, "my_app_steps_total")
    agent.kill()
    browser.wait_for("return document.querySelector('#banner').checkVisibility()", "the banner")
    assert re.match(r"The agent has not answered since \d\d:\d\d:\d\d", browser.text("#banner"))
    assert "my_app_steps_total" in browser.text("#sections"), "the old content stays"
    job.agent(f"--listen={agent.address}")
    browser.wait_for("return document.querySelector('#banner').hidden", "the page to continue")
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
