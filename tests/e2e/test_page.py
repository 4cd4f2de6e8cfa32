"""The agent's page in a real browser: what people see, and that nothing a job says can do more than be seen."""

import json
import re
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from browser import Browser
from conftest import AGENT, EMBEDDING_JOB, environment
from selenium.webdriver.common.keys import Keys
from servers import Gateway, Process, fetch, free_port, wait_until

import catalog

ENTRIES = catalog.entries()
CARD = "document.querySelector(`[data-name=\"${arguments[0]}\"]`)"

# A chart's newest time with a value in each line of it that has any; 0 before there is one.
NEWEST = f"""
const card = {CARD}?.card;
if (!card || !card.graph) return 0;
return card.rows.reduce((newest, [time, ...values]) => (values.some((value) => value !== null) ? time : newest), 0);
"""

# Whether a pixel of one of the lines' colours is on the canvas.
DRAWN = f"""
const card = {CARD}.card;
const wanted = card.lines.map((line) => card.style(line).color.match(/\\w\\w/g).map((each) => parseInt(each, 16)));
return [...card.surface.querySelectorAll('canvas')].some((canvas) => {{
  const {{ data }} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  for (let i = 0; i < data.length; i += 4) {{
    if (data[i + 3] > 90 && wanted.some((color) => color.every((part, k) => Math.abs(part - data[i + k]) < 12))) return true;
  }}
  return false;
}});
"""

EVIL = "<script>window.pwned=1</script><img src=x onerror=window.pwned=2>"
LONG = "a_name_that_goes_on_and_on_" * 6


@pytest.fixture
def browse():
    """Opens an agent's page in a browser of its own."""
    open_ones = []

    def start(agent_url, width=1400, height=1200, scheme="light"):
        browser = Browser(width, height)
        open_ones.append(browser)
        browser.prefer(scheme)
        browser.open(agent_url)
        browser.wait_for("return document.querySelectorAll('.card').length > 0", "the first chart")
        return browser

    yield start
    for browser in open_ones:
        browser.driver.quit()


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo job under an agent, running. Gives the agent's address."""
    directory = tmp_path_factory.mktemp("page")
    segments = Path(tempfile.mkdtemp(prefix="persia-e2e-", dir="/dev/shm"))
    address = f"127.0.0.1:{free_port()}"
    try:
        with Gateway(directory) as gateway:
            command = [AGENT, "exec", "--job=embedding_demo", f"--gateway={gateway.address}", f"--metrics-dir={segments}"]
            command += [f"--listen={address}", "--push-interval=0.5", "--"]
            # At leisure, so that the browser gets on beside it.
            command += ["nice", "-n19", EMBEDDING_JOB, "--duration=600"]
            command += ["--corpus=/usr/share/common-licenses", "--inject-nan=0.01", "--server-capacity=2000"]
            with Process(command, directory / "job.log", env=environment()) as job:
                wait_until(lambda: fetch(f"http://{address}/-/ready")[0] == 200, "the agent")
                names = {entry.name for entry in ENTRIES}
                wait_until(lambda: names <= families(address), "all metrics of the tables", 120)
                yield f"http://{address}"
                assert job.running(), job.output()[-4000:]
    finally:
        shutil.rmtree(segments, ignore_errors=True)


def families(address):
    return {family["name"] for family in json.loads(fetch(f"http://{address}/api/v1/metadata")[1])["families"]}


def newest(browser, name):
    return browser.run(NEWEST, name)


def wait_for_points(browser, name, after=0):
    return wait_until(lambda: max(0, newest(browser, name) - after), f"points of {name} after {after}")


def test_every_metric_of_the_tables_moves(demo, browse):
    browser = browse(demo, height=5000)  # so that all of them are on the screen
    first = {}
    for entry in ENTRIES:
        wait_for_points(browser, entry.name)
        first[entry.name] = newest(browser, entry.name)
    for entry in ENTRIES:
        wait_for_points(browser, entry.name, after=first[entry.name])
        browser.wait_for(DRAWN, f"a line of {entry.name}", entry.name)

        def wait_for_lines(pattern, name=entry.name, most=None):
            """A line shows no value while the job is held up for some seconds."""
            shown = f"return [...{CARD}.querySelectorAll('.line')].map((line) => line.innerText)"

            def matching():
                lines = browser.run(shown, name)[:most]
                return lines if all(re.search(pattern, line) for line in lines) else None

            return wait_until(matching, f"lines of {name} that end in {pattern}")

        if entry.type == "time_cost":
            lines = wait_for_lines(r"\d (s|ms|µs|ns)$", most=4)
            assert [line.split()[0] for line in lines] == ["p50", "p95", "p99", "last"], entry.name
        if entry.type == "counter":
            wait_for_lines("/s$")
        if entry.name in ("index_miss_ratio", "batch_unique_indices_rate"):
            wait_for_lines(" %$")
        table = browser.run(f"return {CARD}.closest('details').dataset.group", entry.name)
        assert table == entry.table, entry.name
    assert browser.text("#job") == "embedding_demo"
    assert re.fullmatch(r"(\d+) of \1 up", browser.text("#tile-workers .value"))
    assert browser.complaints() == []


def test_only_charts_on_the_screen_ask(demo, browse):
    browser = browse(demo, height=700)
    asked = "return performance.getEntriesByType('resource').filter((each) => each.name.includes(`name=${arguments[0]}&`)).length"
    wait_for_points(browser, "batch_unique_indices_rate")
    browser.run("performance.setResourceTimingBufferSize(100000)")  # or it stops counting at 250
    # Questions are asked in turn: when this one is asked again, all others have been asked once.
    wait_for_points(browser, "batch_unique_indices_rate", after=newest(browser, "batch_unique_indices_rate"))
    last = "update_gradient_time_cost"
    assert browser.run(asked, last) == 0
    browser.run(f"{CARD}.scrollIntoView()", last)
    wait_for_points(browser, last)
    before = browser.run(asked, "batch_unique_indices_rate")
    seen = newest(browser, last)
    wait_for_points(browser, last, after=seen)
    assert browser.run(asked, "batch_unique_indices_rate") <= before + 1


def test_keys(demo, browse):
    browser = browse(demo)
    wait_for_points(browser, "index_miss_count")
    browser.press("/")
    assert browser.run("return document.activeElement.id") == "search"
    browser.press(*"miss_count")
    shown = "return [...document.querySelectorAll('.card')].filter((card) => card.checkVisibility()).map((card) => card.dataset.name)"
    assert browser.run(shown) == ["gradient_id_miss_count", "index_miss_count"]
    # From there on by Tab alone.
    reached = []
    while not reached or reached[-1] != "index_miss_count":
        browser.press(Keys.TAB)
        reached.append(browser.run("return document.activeElement.dataset.name ?? document.activeElement.tagName"))
        assert len(reached) < 40, reached
    assert "gradient_id_miss_count" in reached
    assert browser.run("return getComputedStyle(document.activeElement).outlineStyle") != "none"
    tip = f"const tip = {CARD}.querySelector('.tip'); return tip.hidden ? '' : tip.innerText"
    assert browser.run(tip, "index_miss_count") == ""
    browser.press(Keys.ARROW_LEFT)
    assert re.match(r"\d\d:\d\d:\d\d", browser.run(tip, "index_miss_count"))

    # The others are zoomed with it.
    browser.press("+")
    ranges = "return [...document.querySelectorAll('.card')].map((each) => each.card.graph?.xAxisRange()).filter(Boolean)"
    assert browser.find("#unzoom").is_displayed()
    assert len({tuple(each) for each in browser.run(ranges)}) == 1
    browser.press(Keys.ESCAPE)
    assert not browser.find("#unzoom").is_displayed()

    browser.press("p")
    assert browser.find("#pause").get_attribute("aria-pressed") == "true"

    def pushes():
        return int(browser.text("#tile-pushes .value").replace(",", ""))

    def wait_for_pushes(count):
        for _ in range(count):
            before = pushes()
            wait_until(lambda: pushes() > before, "a push")

    wait_for_pushes(2)  # what was asked for before may still have been on its way
    seen = newest(browser, "index_miss_count")
    wait_for_pushes(3)  # the state goes on, and with it the charts would have
    assert newest(browser, "index_miss_count") == seen
    browser.press(" ")
    wait_for_points(browser, "index_miss_count", after=seen)

    browser.press("/", Keys.ESCAPE)
    assert len(browser.run(shown)) > 15
    assert browser.complaints() == []


def test_drag_zooms_all_charts_and_double_click_resets(demo, browse):
    browser = browse(demo)
    for name in ("batch_unique_indices_rate", "estimated_distinct_id"):
        wait_for_points(browser, name)
    chart = browser.find('[data-name="batch_unique_indices_rate"] .surface')
    browser.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", chart)
    browser.mouse().move_to_element_with_offset(chart, 0, -10).click_and_hold().move_by_offset(60, 1).release().perform()
    span = f"const [from, to] = {CARD}.card.graph.xAxisRange(); return to - from"
    browser.wait_for("return !document.querySelector('#unzoom').hidden", "the zoom")
    zoomed = browser.run(span, "batch_unique_indices_rate")
    assert browser.run(span, "estimated_distinct_id") == zoomed

    def reset():
        browser.mouse().double_click(chart).perform()  # again: on a busy machine it may have been two clicks
        return browser.run(span, "estimated_distinct_id") > 2 * zoomed

    wait_until(reset, "all of it")
    assert not browser.find("#unzoom").is_displayed()


def test_double_click_on_a_time_without_data_resets(evil):
    """The job is young, and a chart shows a minute at least: there is nothing yet in its left half."""
    browser = evil(1400, 5000)
    wait_for_points(browser, "my_app_gauge")
    chart = browser.find('[data-name="my_app_gauge"] .surface')
    browser.mouse().move_to_element_with_offset(chart, -120, -10).click_and_hold().move_by_offset(30, 1).release().perform()
    browser.wait_for(f"return !{CARD}.querySelector('.none').hidden", "no data in this time", "my_app_gauge")

    def reset():
        browser.mouse().double_click(chart).perform()
        return browser.run(f"return document.querySelector('#unzoom').hidden && {CARD}.querySelector('.none').hidden", "my_app_gauge")

    wait_until(reset, "all of it")


def test_dark_and_light(demo, browse):
    browser = browse(demo, scheme="light")
    wait_for_points(browser, "batch_unique_indices_rate")
    background = "return getComputedStyle(document.body).backgroundColor"
    line = "return document.querySelector('[data-name=batch_unique_indices_rate] .swatch path').getAttribute('stroke')"
    light = browser.run(background), browser.run(line)
    browser.prefer("dark")
    wait_until(lambda: browser.run(background) != light[0] and browser.run(line) != light[1], "the dark")
    browser.find("#theme").click()
    assert (browser.run(background), browser.run(line)) == light
    browser.driver.refresh()
    assert browser.run(background) == light[0], "the choice is kept"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_can_be_read(demo, browse, scheme):
    """A contrast of 4.5 at least, as WCAG has it for text."""
    browser = browse(demo, scheme=scheme)
    wait_for_points(browser, "batch_unique_indices_rate")
    poor = browser.run("""
      const parse = (color) => color.match(/[\\d.]+/g).map(Number);
      const light = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
      const back = (element) => {
        const color = parse(getComputedStyle(element).backgroundColor);
        return color[3] === 0 ? back(element.parentElement) : color;
      };
      return [...document.querySelectorAll('body *')].filter((element) =>
        element.checkVisibility() && [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())
      ).flatMap((element) => {
        const pair = [light(parse(getComputedStyle(element).color)), light(back(element))].sort((a, b) => b - a);
        const contrast = (pair[0] + 0.05) / (pair[1] + 0.05);
        return contrast < 4.5 ? [`${element.tagName}.${element.className} ${element.textContent.slice(0, 30)}: ${contrast}`] : [];
      });""")
    assert poor == []


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
    assert re.match(r"The agent does not answer since \d\d:\d\d:\d\d", browser.text("#banner"))
    assert "my_app_steps_total" in browser.text("#sections"), "what was there stays"
    job.agent(f"--listen={agent.address}")
    browser.wait_for("return document.querySelector('#banner').hidden", "the page to go on")
    wait_for_points(browser, "my_app_steps_total", after=seen)


def test_lines_that_are_left_out_are_told_and_to_be_had(job, browse):
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


EVIL_JOB = f"""
import sys
from persia_metrics import Counter, Gauge, Histogram
from persia_metrics.torchelastic.events import Event, record_event
evil, long = {EVIL!r}, {LONG!r}
Counter(evil, evil, group="my_app").inc()
Gauge("unit", evil, group="my_app", unit=evil).set(1)
gauge = Gauge("gauge", evil, ["feat", evil], group="my_app")
gauge.labels(evil, evil).set(1)
gauge.labels(long, evil).set(2)
Gauge(long + "info", long, ["feat"], group="my_app").labels(evil + long).set(1)
histogram = Histogram(long, long, ["feat"], group="my_app")
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
    # The event's mark on a chart tells of it too.
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
    wait_for_points(browser, "my_app_gauge")
    browser.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    browser.wait_for("return document.querySelectorAll('.info dd').length > 0", "the labels of an info metric")
    browser.wait_for("return document.querySelectorAll('#events-list li').length > 0", "the event")
    assert browser.run("return document.scrollingElement.scrollWidth") <= width
