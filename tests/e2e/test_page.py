"""The charts of a training job in a real browser: their content, and keys and mouse."""

import re

import pytest
from page import CARD, DRAWN, demo_job, newest, wait_for_points
from selenium.webdriver.common.keys import Keys
from servers import wait_until

import catalog

ENTRIES = catalog.entries()


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The address of the page of a training job."""
    with demo_job(tmp_path_factory.mktemp("page")) as address:
        yield f"http://{address}"


def test_every_metric_of_the_tables_moves(demo, browse):
    browser = browse(demo, height=7000)  # all charts are on the screen
    first = {}
    for entry in ENTRIES:
        wait_for_points(browser, entry.name)
        first[entry.name] = newest(browser, entry.name)
    for entry in ENTRIES:
        wait_for_points(browser, entry.name, after=first[entry.name])
        browser.wait_for(DRAWN, f"a line of {entry.name}", entry.name)

        def wait_for_lines(pattern, name=entry.name, most=None):
            """Waits, since a line has no value while the job is delayed for some seconds."""
            shown = f"return [...{CARD}.querySelectorAll('.line')].map((line) => line.innerText)"

            def matching():
                lines = browser.run(shown, name)[:most]
                return lines if all(re.search(pattern, line) for line in lines) else None

            return wait_until(matching, f"lines of {name} that end in {pattern}")

        if entry.type == "time_cost":
            lines = wait_for_lines(r"\d (s|ms|µs|ns)$", most=4)
            names = [line.split()[0] for line in lines]
            assert names in (["mean", "p50", "p99", "last"], ["min", "median", "max"]), entry.name
        if entry.type == "counter":
            wait_for_lines("/s$")
        if entry.name in ("index_miss_ratio", "batch_unique_indices_rate"):
            wait_for_lines(" %$")
        table = browser.run(f"return {CARD}.closest('details').dataset.group", entry.name)
        assert table == entry.table, entry.name
    assert browser.text("#job") == "embedding_demo"
    assert re.fullmatch(r"(\d+) of \1 up", browser.text("#tile-workers .value"))
    assert browser.complaints() == []


def test_the_job_comes_first_and_the_agent_last(demo, browse):
    """The order of the page; four equal tiles; the first chart on the first screen; what the agent does for itself is closed."""
    browser = browse(demo, height=900)
    wait_for_points(browser, "batch_unique_indices_rate")
    order = ["#health", "#tiles-job", "#sections", "#folded", "#agent-sections", "#plumbing"]
    tops = browser.run("return arguments[0].map((selector) => document.querySelector(selector).getBoundingClientRect().top)", order)
    assert tops == sorted(tops)
    tiles = browser.run("""return [...document.querySelectorAll('#tiles-job > .tile')].map((tile) => {
      const { top, width, height } = tile.getBoundingClientRect();
      return [tile.id, Math.round(top), Math.round(width), Math.round(height)];
    })""")
    assert [name for name, *_ in tiles] == ["tile-progress", "tile-speed", "tile-goodput", "tile-workers"]
    assert len({tuple(place) for _, *place in tiles}) == 1, tiles
    assert browser.run(f"return {CARD}.querySelector('.plot').getBoundingClientRect().bottom", "batch_unique_indices_rate") < 900
    closed = "return [...document.querySelectorAll('#folded > details, #agent-sections > details')].filter(({ open, hidden }) => open && !hidden).map(({ id }) => id)"
    assert browser.run(closed) == []
    assert browser.run("return document.querySelector('#sections [data-group^=persia_agent]')") is None
    groups = browser.run("return [...document.querySelectorAll('#agent-sections > details')].map((each) => each.dataset.group)")
    assert {"persia_agent_*", "persia_process_*"} <= set(groups)
    # The help text is the title, the name is small.
    title = browser.run(f"return {CARD}.querySelector('h3').innerText", "batch_unique_indices_rate")
    (entry,) = [entry for entry in ENTRIES if entry.name == "batch_unique_indices_rate"]
    assert entry.name not in title and browser.run(f"return {CARD}.querySelector('.name').innerText", entry.name) == entry.name
    assert browser.complaints() == []


def test_only_charts_on_the_screen_ask(demo, browse):
    browser = browse(demo, height=700)
    asked = "return performance.getEntriesByType('resource').filter((each) => each.name.includes(`name=${arguments[0]}&`)).length"
    browser.wait_for("return document.querySelector('[data-name=batch_unique_indices_rate]')", "the first chart")
    browser.run(f"{CARD}.scrollIntoView()", "batch_unique_indices_rate")
    wait_for_points(browser, "batch_unique_indices_rate")
    browser.run("performance.setResourceTimingBufferSize(100000)")  # the default is 250
    # Requests are sent in turn: when this one is repeated, all others have been sent once.
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
    # From here on with Tab only.
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

    # All charts zoom together.
    browser.press("+")
    ranges = "return [...document.querySelectorAll('.card')].map((each) => each.card.graph?.xAxisRange()).filter(Boolean)"
    assert browser.find("#unzoom").is_displayed()
    assert len({tuple(each) for each in browser.run(ranges)}) == 1
    browser.press(Keys.ESCAPE)
    assert not browser.find("#unzoom").is_displayed()

    browser.press("p")
    assert browser.find("#pause").get_attribute("aria-pressed") == "true"

    def pushes():
        return int(browser.text("#plumbing-pushes").split()[0].replace(",", ""))

    def wait_for_pushes(count):
        for _ in range(count):
            before = pushes()
            wait_until(lambda: pushes() > before, "a push")

    wait_for_pushes(2)  # an earlier request may still be pending
    seen = newest(browser, "index_miss_count")
    wait_for_pushes(3)  # the status is still updated, the charts are not
    assert newest(browser, "index_miss_count") == seen
    browser.press(" ")  # scrolls
    assert browser.find("#pause").get_attribute("aria-pressed") == "true"
    browser.press("p")
    wait_for_points(browser, "index_miss_count", after=seen)

    browser.press("/", Keys.ESCAPE)
    assert len(browser.run(shown)) > 15
    assert browser.complaints() == []


def test_zoomed_lines_stay_within_the_chart(demo, browse):
    """A zoomed chart draws lines to the next point outside, with any value."""
    browser = browse(demo)
    name = "index_miss_count"
    browser.wait_for(f"return {CARD}?.card.rows.length > 8", "nine points", name)
    zoomed = browser.run(
        f"""
        const {{ card }} = {CARD};
        const press = (key) => card.element.dispatchEvent(new KeyboardEvent('keydown', {{ key }}));
        card.rows = card.rows.map(([time], i) => [time, ...card.lines.map(() => 2 ** -i)]);
        for (let i = 0; i < 8; i++) press('+');
        const [from] = card.graph.xAxisRange();
        const [, high] = card.graph.yAxisRange();
        const inside = card.rows.findIndex(([time]) => time >= from);
        press('ArrowLeft');
        return {{ inside, high, selected: card.graph.getSelection() + card.firstDrawn, last: card.rows.length - 1 }};
        """,
        name,
    )
    assert zoomed["inside"] > 0
    assert zoomed["high"] > 2.0 ** (1 - zoomed["inside"])
    assert zoomed["selected"] == zoomed["last"] - 1
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

    browser.double_click(chart)
    wait_until(lambda: browser.run(span, "estimated_distinct_id") > 2 * zoomed, "all of it")
    assert not browser.find("#unzoom").is_displayed()


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
    """Text has a contrast of at least 4.5, as WCAG demands."""
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
