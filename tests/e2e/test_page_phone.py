"""The page on a phone of 390 pixels: the problems, the numbers of the job, and the rest folded. In a real browser."""

import os
import signal

import pytest
from page import CARD, start_ranks, wait_for_points
from servers import wait_until

SIZE = (390, 844)
TOPS = """
return arguments[0].map((selector) => document.querySelector(selector).getBoundingClientRect().top + scrollY)"""
PLACES = ["#tile-throughput", "#workers", "#tile-push"]


def is_beside(job, workers, push):
    return push == job < workers


def is_below(job, workers, push):
    return job <= workers <= push


@pytest.fixture
def phone(job, browse):
    """The page of eight ranks, of which one died."""
    agent = job.agent()
    pids = start_ranks(job, [0.2] * 8)
    browser = browse(agent.url, *SIZE)
    browser.wait_for("return document.querySelector('#tile-workers .value')?.textContent === '8 of 8 up'", "the ranks")
    browser.wait_for("return document.querySelectorAll('#sections > details').length > 3", "the sections")
    os.kill(pids[5], signal.SIGKILL)
    browser.wait_for("return document.querySelector('#health-reasons button')", "the reason")
    return browser


def test_problems_come_first_and_the_rest_is_folded(phone):
    order = ["#health", "#tile-throughput", "#tile-workers", "#tile-slowest", "#workers", "#tile-push", "#sections"]
    tops = phone.run(TOPS, order)
    assert tops == sorted(tops)
    assert tops[order.index("#workers")] < SIZE[1], "all about the job is on the first screen"
    assert phone.run("return [...document.querySelectorAll('details')].filter((each) => each.open).map((each) => each.id)") == []
    wait_until(lambda: phone.run("return document.scrollingElement.scrollHeight") < 2 * SIZE[1], "a short page")
    assert phone.run("return document.scrollingElement.scrollWidth") == SIZE[0]
    phone.find("#workers summary").click()
    assert phone.text("#workers-body tr:first-child .instance") == "rep_5"
    assert phone.complaints() == []
    phone.resize(1400, 900)
    wait_until(lambda: is_beside(*phone.run(TOPS, PLACES)), "the agent's tiles beside those of the job")
    phone.resize(*SIZE)
    wait_until(lambda: is_below(*phone.run(TOPS, PLACES)), "them below again")


def test_a_reason_leads_to_the_charts_of_its_worker(phone):
    phone.find("#health-reasons button").click()
    wait_for_points(phone, "my_app_steps_total")
    in_view = f"const {{ top }} = {CARD}.getBoundingClientRect(); return top >= 0 && top < innerHeight / 2"
    phone.wait_for(in_view, "the first chart in view", "my_app_steps_total")
    assert phone.text("#focus-name") == "trainer rep_5"


def test_a_search_unfolds_what_it_finds(phone):
    search = "const field = document.querySelector('#search'); field.value = arguments[0]; field.dispatchEvent(new Event('input'))"
    shown = "return [...document.querySelectorAll('.card')].filter((card) => card.checkVisibility()).map((card) => card.dataset.name)"
    phone.run(search, "my_app_steps_total")
    found = {"my_app_steps_total", "persia_job_throughput"}  # the second one by its label, once there is a throughput
    wait_until(lambda: "my_app_steps_total" in phone.run(shown) and set(phone.run(shown)) <= found, "the chart")
    phone.run(search, "")
    wait_until(lambda: phone.run(shown) == [], "all folded again")
