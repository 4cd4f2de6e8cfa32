"""The page shows hostile and long names of a job as text, and they do not change its layout. In a real browser."""

import json

import pytest
from page import CARD, wait_for_points
from servers import fetch, wait_until

EVIL = "<script>window.pwned=1</script><img src=x onerror=window.pwned=2>"
LONG = "a_name_that_goes_on_and_on_" * 6

EVIL_JOB = f"""
import sys
from persia_metrics import Counter, Gauge, Histogram
from persia_metrics.torchelastic.events import Event, record_event
evil, long = {EVIL!r}, {LONG!r}
Counter("my_app", evil, evil).inc()
Gauge("my_app", "unit", evil, unit=evil).set(1)
gauge = Gauge("my_app", "gauge", evil, ["feat", evil])
gauge.labels(evil, evil).set(1)
gauge.labels(long, evil).set(2)
Gauge("my_app", long + "info", long, ["feat"]).labels(evil + long).set(1)
histogram = Histogram("my_app", long, long, ["feat"])
for value in (evil, long):
    histogram.labels(value).observe(1)
record_event(Event(name=evil, type=evil, metadata={{"key": evil, "long": long}}))
print("ready", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def evil(job, browse):
    agent = job.agent(f"--job={EVIL}")
    worker = job.python(EVIL_JOB, PERSIA_ROLE=EVIL + LONG, PERSIA_JOB_NAME=EVIL)
    worker.wait_for("ready")
    return lambda *size: browse(agent.url, *size)


def test_what_a_job_says_is_text_and_no_more(evil):
    browser = evil(1400, 5000)
    wait_for_points(browser, "my_app_gauge")
    browser.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    browser.wait_for("return document.querySelector('#events-list').innerText.includes(arguments[0])", "the event", EVIL)
    card = f"return {CARD}.innerText"
    assert EVIL in browser.run(card, "my_app_gauge")
    assert browser.text("#job") == EVIL
    assert EVIL in browser.text("#workers-body")
    # The tooltip of a chart has the event, too.
    chart = browser.find('[data-name="my_app_gauge"] .surface')
    happened = json.loads(fetch(browser.driver.current_url + "api/v1/events")[1])["events"][0]["timestamp"]
    place = f"const {{ card }} = {CARD}; return card.graph.toDomXCoord(arguments[1]) - card.surface.clientWidth / 2"

    def told():
        x = browser.run(place, "my_app_gauge", happened)
        browser.mouse().move_to_element_with_offset(chart, int(x), 0).perform()
        return EVIL in browser.run(f"return {CARD}.querySelector('.tip').innerText", "my_app_gauge")

    wait_until(told, "the tooltip")
    assert browser.run("return [...document.querySelectorAll('script, img, iframe, style, [onerror]')].map((each) => each.src)") == browser.run(
        "return ['theme.js', 'dygraph.min.js', 'page.js'].map((each) => new URL(`assets/${each}`, location).href)"
    )
    assert browser.run("return window.pwned ?? null") is None
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [360, 700, 1400])
def test_nothing_is_wider_than_the_screen(evil, width):
    browser = evil(width, 5000)
    browser.wait_for(f"return {CARD}", "the card", "my_app_gauge")
    browser.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")  # a phone folds them
    wait_for_points(browser, "my_app_gauge")
    browser.wait_for("return document.querySelectorAll('.info dd').length > 0", "the labels of an info metric")
    browser.wait_for("return document.querySelectorAll('#events-list li').length > 0", "the event")
    assert browser.run("return document.scrollingElement.scrollWidth") <= width


def test_double_click_on_a_time_without_data_resets(evil):
    """The job is new, and a chart shows at least a minute: its left half is still empty."""
    browser = evil(1400, 5000)
    wait_for_points(browser, "my_app_gauge")
    chart = browser.find('[data-name="my_app_gauge"] .surface')
    browser.mouse().move_to_element_with_offset(chart, -120, -10).click_and_hold().move_by_offset(30, 1).release().perform()
    browser.wait_for(f"return !{CARD}.querySelector('.none').hidden", "no data in this time", "my_app_gauge")

    browser.double_click(chart)
    browser.wait_for(f"return document.querySelector('#unzoom').hidden && {CARD}.querySelector('.none').hidden", "all of it", "my_app_gauge")
