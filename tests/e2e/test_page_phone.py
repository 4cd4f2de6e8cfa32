"""The page on a phone of 390 pixels: the problems, the numbers of the job, the first group of charts, and the rest folded. In a real browser."""

import os
import signal

import pytest
from page import CARD, start_ranks, wait_for_points
from servers import wait_until

SIZE = (390, 844)
TOPS = """
return arguments[0].map((selector) => document.querySelector(selector).getBoundingClientRect().top + scrollY)"""
OPEN = "return [...document.querySelectorAll('details')].filter((each) => each.open && each.checkVisibility()).map((each) => each.id)"
# Of the four tiles: the places of their left and upper edges.
PLACES = """
const edges = (of) => [...new Set([...document.querySelectorAll('#tiles-job > .tile')].map((tile) => Math.round(tile.getBoundingClientRect()[of])))];
return [edges('left').length, edges('top').length]"""


@pytest.fixture
def phone(job, browse):
    """The page of eight ranks, of which one died."""
    agent = job.agent()
    pids = start_ranks(job, [0.2] * 8)
    browser = browse(agent.url, *SIZE)
    browser.wait_for("return document.querySelector('#tile-workers .value')?.textContent === '8 of 8 up'", "the ranks")
    browser.wait_for("return document.querySelectorAll('#agent-sections > details').length > 3", "the sections")
    os.kill(pids[5], signal.SIGKILL)
    browser.wait_for("return document.querySelector('#health-worst button')", "the reason")
    return browser


def test_problems_come_first_and_only_the_first_group_is_open(phone):
    order = ["#health", "#tile-progress", "#tile-goodput", "#sections", "#workers", "#agent-sections", "#plumbing"]
    tops = phone.run(TOPS, order)
    assert tops == sorted(tops)
    assert phone.run(PLACES) == [2, 2], "two tiles beside each other"
    assert phone.run(OPEN) == ["group-2-my_app"]
    wait_for_points(phone, "my_app_steps_total")
    chart = "const { top, bottom } = document.querySelector('[data-name=my_app_steps_total] .plot').getBoundingClientRect(); return [top, bottom]"
    assert phone.run(chart)[0] < SIZE[1], "the first chart begins on the first screen"
    assert phone.run("return document.scrollingElement.scrollWidth") == SIZE[0]
    phone.find("#workers summary").click()
    assert phone.text("#workers-body tr:first-child .instance") == "rep_5"
    assert phone.complaints() == []
    phone.resize(1400, 900)
    wait_until(lambda: phone.run(PLACES) == [4, 1], "the tiles in one row")
    phone.resize(*SIZE)
    wait_until(lambda: phone.run(PLACES) == [2, 2], "them in two rows again")


def test_a_reason_leads_to_the_charts_of_its_worker(phone):
    phone.find("#health-worst button").click()
    wait_for_points(phone, "my_app_steps_total")
    in_view = f"const {{ top }} = {CARD}.getBoundingClientRect(); return top >= 0 && top < innerHeight / 2"
    phone.wait_for(in_view, "the first chart in view", "my_app_steps_total")
    assert phone.text("#focus-name") == "trainer rep_5"


def test_a_search_unfolds_what_it_finds(phone):
    search = "const field = document.querySelector('#search'); field.value = arguments[0]; field.dispatchEvent(new Event('input'))"
    shown = "return [...document.querySelectorAll('.card')].filter((card) => card.checkVisibility()).map((card) => card.dataset.name)"
    before = phone.run(shown)
    assert "my_app_steps_total" in before and "persia_job_throughput" not in before
    phone.run(search, "persia_job_throughput")
    wait_until(lambda: phone.run(shown) == ["persia_job_throughput"], "a chart of a folded section")
    phone.run(search, "")
    wait_until(lambda: phone.run(shown) == before, "it is folded again")
