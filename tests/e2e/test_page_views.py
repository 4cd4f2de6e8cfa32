"""What a reader chooses on the page: search, pins, groups; and the page as one file. In a real browser."""

import json
import os
import re
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from browser import FLAGS
from conftest import PYTHON, PYTHON_PACKAGE
from page import CARD, DRAWN, newest, wait_for_points
from servers import fetch, find_program, wait_until

SHOWN = "return [...document.querySelectorAll('.card')].filter((card) => !card.hidden).map((card) => card.dataset.name)"
GROUPS = "return [...document.querySelectorAll('#sections > details')].map((each) => each.dataset.group)"
SEARCH = "const field = document.querySelector('#search'); field.value = arguments[0]; field.dispatchEvent(new Event('input'))"


@pytest.fixture
def two_groups(job, browse):
    """The browser at an agent with the families of two groups."""
    agent = job.agent()
    worker = job.worker()
    worker.tell("count_feat my_app ids_total users 1")
    worker.tell("count_feat my_app ids_total items 1")
    worker.tell("busy my_app steps_total")
    worker.tell("set my_own loss 0.5")
    browser = browse(agent.url)
    browser.wait_for("return document.querySelector('[data-name=my_own_loss]')", "the charts")
    wait_until(lambda: {"my_app_ids_total", "my_app_steps_total"} <= set(browser.run(SHOWN)), "all charts")
    return browser


def test_a_search_finds_the_values_of_labels(two_groups):
    browser = two_groups
    browser.run(SEARCH, "ITEMS")
    wait_until(lambda: browser.run(SHOWN) == ["my_app_ids_total"], "the family with this label value")
    browser.run(SEARCH, "ids users")
    wait_until(lambda: browser.run(SHOWN) == ["my_app_ids_total"], "a name and a value together")
    browser.run(SEARCH, "loss rep_0")
    wait_until(lambda: browser.run(SHOWN) == ["my_own_loss"], "the value of an identity's label")
    browser.run(SEARCH, "no_such_value")
    wait_until(lambda: browser.run(SHOWN) == [] and browser.text("#found").startswith("0 of "), "nothing")
    browser.run(SEARCH, "")
    wait_until(lambda: len(browser.run(SHOWN)) > 3, "everything")
    assert browser.complaints() == []


def test_groups_are_sections_and_pins_stand_first_and_are_kept_in_the_url(two_groups):
    browser = two_groups
    section = f"return {CARD}.closest('details').dataset.group"
    assert browser.run(GROUPS)[:2] == ["my_app", "my_own"], "although both begin with the same word"
    assert browser.run(section, "my_app_ids_total") == "my_app"
    for name in ("my_own_loss", "my_app_ids_total"):
        browser.run(f"{CARD}.querySelector('.pin').click()", name)
    pinned = "return [...document.querySelectorAll('#sections > details')][0]?.dataset.group === 'pinned' && "
    pinned += "[...document.querySelectorAll('[data-group=pinned] .card')].map((card) => card.dataset.name)"
    in_order = ["my_own_loss", "my_app_ids_total"]
    assert browser.run(pinned) == in_order
    browser.run("location.reload()")
    wait_until(lambda: browser.run(pinned) == in_order, "the same after a reload")
    wait_for_points(browser, "my_own_loss")
    browser.run(f"{CARD}.querySelector('.pin').click()", "my_own_loss")
    assert browser.run(pinned) == ["my_app_ids_total"]
    assert "my_own_loss" not in browser.run("return location.search")
    assert browser.run(section, "my_own_loss") == "my_own"


def test_search_range_and_zoom_are_kept_in_the_url(two_groups):
    browser = two_groups
    browser.run(SEARCH, "loss")
    wait_until(lambda: browser.run(SHOWN) == ["my_own_loss"], "the family")
    browser.run("document.querySelector('#ranges button:nth-child(2)').click()")
    wait_for_points(browser, "my_own_loss")
    browser.run(f"{CARD}.dispatchEvent(new KeyboardEvent('keydown', {{ key: '+' }}))", "my_own_loss")
    span = f"return {CARD}.card.graph.xAxisRange()"
    zoomed = browser.run(span, "my_own_loss")
    address = browser.run("return location.search")
    assert "search=loss" in address and "range=15m" in address and "zoom=" in address
    browser.driver.refresh()
    wait_until(lambda: browser.run(SHOWN) == ["my_own_loss"], "the same family after a reload")
    wait_for_points(browser, "my_own_loss")
    assert browser.run("return document.querySelector('#search').value") == "loss"
    assert browser.text("#ranges [aria-pressed=true]") == "15m"
    assert browser.find("#unzoom").is_displayed()
    assert browser.run(span, "my_own_loss") == pytest.approx(zoomed, abs=1000)
    assert browser.run("return location.search") == address
    browser.find("#unzoom").click()
    assert "zoom=" not in browser.run("return location.search")
    browser.run(SEARCH, "")
    assert browser.run("return location.search") == "?range=15m"


# Of each section that families make, its title and its first family.
SECTIONS = """return import('/assets/sections.js').then(({ groupFamilies }) =>
  groupFamilies(arguments[0].map(([name, group]) => ({ name, group, table: '', type: 'gauge', help: '' })), [])
    .map(({ title, prefix, entries }) => [title || prefix, entries[0].family.name]))"""


def test_a_programs_own_metrics_come_before_the_librarys_and_the_launchers(job, browse):
    families = [["zoo_loss", "zoo"], ["torchelastic_rendezvous_total", "torchelastic"], ["persia_phase_step", "persia_phase"], ["my_app_loss", "my_app"]]
    families += [["up", ""], ["persia_cgroup_memory_usage_bytes", ""], ["persia_job_info", ""]]
    browser = browse(job.agent().url)
    assert browser.run(SECTIONS, families) == [
        ["my_app", "my_app_loss"],
        ["zoo", "zoo_loss"],
        ["Steps and phases", "persia_phase_step"],
        ["Launcher", "torchelastic_rendezvous_total"],
        ["Others", "up"],
        ["The job", "persia_job_info"],
        ["Metrics of the machine", "persia_cgroup_memory_usage_bytes"],
    ]
    titles = browser.run("return [...document.querySelectorAll('summary h2')].map((each) => each.firstChild.textContent.trim())")
    assert len(titles) == len(set(titles)), titles


def test_the_tooltip_hides_no_line(two_groups):
    browser = two_groups
    wait_for_points(browser, "my_app_steps_total")
    chart = browser.find('[data-name="my_app_steps_total"] .surface')
    browser.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", chart)
    places = f"""
    const card = {CARD}; const tip = card.querySelector('.tip');
    return tip.hidden ? null : [tip.getBoundingClientRect().bottom, card.querySelector('.plot').getBoundingClientRect().top]"""

    def places_of_tip():
        browser.mouse().move_to_element_with_offset(chart, 90, 0).perform()
        return browser.run(places, "my_app_steps_total")

    bottom, top = wait_until(places_of_tip, "the tooltip")
    assert bottom <= top


JOB = """
import sys, time
from persia_metrics import Counter, Gauge
steps = Counter("my_app", "steps_total", "Steps trained.")
Gauge("my_app", "evil", "</script><script>window.pwned=1</script>").set(1)
loss = Gauge("my_app", "loss", "Loss by part.", ["part"])
loss.labels("attention").set(1)
deadline = time.monotonic() + float(sys.argv[1])
while time.monotonic() < deadline:
    steps.inc()
    time.sleep(0.05)
sys.exit(int(sys.argv[2]))
"""


@pytest.fixture
def start(job):
    """Starts a job of some seconds under `exec`, with flags."""

    def run(*flags, seconds=4, exit_code=3):
        return job.exec(PYTHON, "-c", JOB, str(seconds), str(exit_code), flags=flags, env={"PYTHONPATH": str(PYTHON_PACKAGE)})

    return run


def test_a_report_opens_without_a_server(start, browse, tmp_path):
    report = tmp_path / "report.html"
    agent = start(f"--report={os.path.relpath(report)}", "--history=5m")
    assert agent.wait() == 3
    assert f"the page is in {os.path.relpath(report)}" in agent.output()
    browser = browse(report.as_uri(), height=3000)
    browser.wait_for("return document.querySelector('#health-state').textContent === 'Failed, exit 3'", "the state of the job")
    assert browser.run("return document.body.classList.contains('report')")
    wait_for_points(browser, "my_app_steps_total")
    assert newest(browser, "my_app_loss") > 0
    assert re.match(r"Report of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\. ", browser.text("#about"))
    # What needs an agent is not there.
    links = browser.run("return [...document.querySelectorAll('a')].filter((each) => each.checkVisibility()).map((each) => each.getAttribute('href')[0])")
    assert set(links) == {"#"}
    assert not browser.find("#pause").is_displayed() and not browser.find("#ranges").is_displayed() and "pause" not in browser.text(".keys")
    browser.run(SEARCH, "attention")
    wait_until(lambda: browser.run(SHOWN) == ["my_app_loss"], "the family with this label value")
    browser.run(SEARCH, "")
    assert browser.run("return window.pwned ?? null") is None
    # A click on a worker filters the charts, without an agent to ask.
    browser.run("document.querySelector('#workers-body button.worker').click()")
    wait_for_points(browser, "my_app_steps_total")
    assert browser.run("return performance.getEntriesByType('resource').filter((each) => !each.name.startsWith('data:')).length") == 0
    assert browser.complaints() == []


def test_the_report_of_a_run_of_one_collection_shows_its_points(job, browse, tmp_path):
    report = tmp_path / "report.html"
    source = "from persia_metrics import Counter, Gauge; Gauge('my_app', 'loss').set(0.5); Counter('my_app', 'steps').inc()"
    agent = job.exec(PYTHON, "-c", source, flags=[f"--report={report}"], env={"PYTHONPATH": str(PYTHON_PACKAGE)})
    assert agent.wait() == 0
    browser = browse(report.as_uri())
    wait_for_points(browser, "my_app_loss")
    wait_until(lambda: browser.run(DRAWN.replace("/assets/", "persia/"), "my_app_loss"), "the point of the gauge")
    assert browser.run(f"return {CARD}.querySelector('.none').textContent", "my_app_steps") == "no rate in this time range"
    assert browser.complaints() == []


OBSERVES = """
import os, time
from persia_metrics import Histogram
steps, saves = Histogram("my_app", "step_seconds"), Histogram("my_app", "save_seconds")
while True:
    steps.observe(0.101)
    saves.observe(20)
    time.sleep(0.05)
"""


def test_a_percentile_is_shown_as_the_bound_that_it_is_known_by(job, browse):
    agent = job.agent()
    job.python(OBSERVES)
    browser = browse(agent.url)
    lines = f"return [...{CARD}.querySelectorAll('.legend .line')].map((line) => line.textContent)"
    wait_until(lambda: browser.run(lines, "my_app_step_seconds") == ["mean101 ms", "p50≤ 250 ms", "p99≤ 250 ms"], "the steps")
    wait_until(lambda: browser.run(lines, "my_app_save_seconds") == ["mean20 s", "p50> 10 s", "p99> 10 s"], "above the last bound")
    assert browser.complaints() == []


def test_a_report_that_cannot_be_written_is_told_at_the_start_and_changes_nothing(start):
    agent = start("--report=/no/such/directory/report.html", seconds=1, exit_code=0)
    assert agent.wait() == 0
    output = agent.output()
    assert output.index('"/no/such/directory/report.html" cannot be written at the end') < output.index("the report is not written")
    assert "No such file or directory" in output


def test_the_page_of_a_running_job_is_saved_as_a_report(job, browse, tmp_path):
    agent = job.agent()
    job.worker().tell("busy my_app steps_total")
    browser = browse(agent.url)
    wait_for_points(browser, "my_app_steps_total")
    status, body = fetch(f"{agent.url}/report.html")
    assert status == 200
    saved = tmp_path / "saved.html"
    saved.write_text(body)
    browser = browse(saved.as_uri())
    wait_for_points(browser, "my_app_steps_total")
    assert browser.text("#health-state") == "Running"
    assert browser.complaints() == []


def test_a_finished_job_is_not_shown_in_red(start, browse):
    agent = start("--linger=10m", seconds=6, exit_code=0)
    wait_until(lambda: health(agent) == "finished", "the command's end")
    wait_until(lambda: agent.metrics().one("persia_exec_exit_code") == 0, "a scrape that sees how the command ended")
    browser = browse(agent.url)
    browser.wait_for("return document.querySelector('#health-state').textContent === 'Finished, exit 0'", "the banner")
    assert re.fullmatch(r"at \d\d:\d\d:\d\d", browser.text("#health-since"))
    assert browser.run("return document.querySelector('#tile-speed').className") == "tile"
    assert browser.text("#tile-speed .detail").startswith("my_app_steps_total of all ranks together, in the last ")
    assert browser.run("return document.querySelectorAll('.bad').length") == 0
    assert not browser.run("return document.title").startswith("!")
    agent.signal(signal.SIGTERM)
    assert agent.wait() == 0


@pytest.mark.parametrize(("exit_code", "state"), [(0, "Finished, exit 0"), (3, "Failed, exit 3")])
def test_an_open_page_is_told_how_the_job_ended_and_keeps_the_last_values(start, browse, tmp_path, exit_code, state):
    report = tmp_path / "report.html"
    agent = start(f"--report={os.path.relpath(report)}", seconds=15, exit_code=exit_code)
    wait_until(lambda: health(agent) == "running", "the job")
    browser = browse(agent.url)
    wait_for_points(browser, "my_app_steps_total")
    assert agent.wait() == exit_code
    browser.wait_for("return document.querySelector('#health-state').textContent === arguments[0]", "the end", state)
    browser.wait_for("return document.querySelector('#health-kept').checkVisibility()", "what the page shows")
    kept = r"The agent has ended with the job, and keeps this page in (/.*)\. Shown are the last values, of \d\d:\d\d:\d\d\."
    assert Path(re.fullmatch(kept, browser.text("#health-kept"))[1]).samefile(report)
    assert not browser.find("#banner").is_displayed() and not browser.run("return document.body.classList.contains('down')")
    assert browser.run("return document.title").startswith("!") == (exit_code != 0)
    last = browser.run("return document.querySelector('#health-kept').innerText").removesuffix(".").split()[-1]
    shown = "return new Date(arguments[0]).toLocaleTimeString([], {hourCycle: 'h23', hour: '2-digit', minute: '2-digit', second: '2-digit'})"
    wait_until(lambda: browser.run(shown, newest(browser, "my_app_steps_total")) == last, "the chart to go on until the end")
    browser.run("window.dispatchEvent(new Event('visibilitychange'))")  # a poll that fails changes nothing
    assert browser.text("#health-state") == state


def test_a_browser_without_a_screen_takes_a_picture_of_the_page(job, tmp_path):
    """Chromium's own option waits until nothing is loaded any more, while the time of the page is ahead of the clock."""
    agent = job.agent()
    job.worker().tell("busy my_app steps_total")
    picture = tmp_path / "page.png"
    # The path of chromium's socket in it has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="persia-") as profile:
        flags = [*FLAGS, f"--user-data-dir={profile}", "--virtual-time-budget=10000", f"--screenshot={picture}"]
        subprocess.run([find_program("chromium"), *flags, agent.url], check=True, timeout=120, env={**os.environ, "TMPDIR": profile})
    assert picture.exists()


def test_a_request_for_the_end_is_answered_when_the_agent_ends(start):
    agent = start(seconds=4, exit_code=0)
    wait_until(lambda: health(agent) == "running", "the job")
    status, body = fetch(f"{agent.url}/api/v1/end")
    last = json.loads(body)
    assert (status, last["health"]["state"], last["health"]["exit_code"]) == (200, "finished", 0)
    assert agent.wait() == 0


def test_an_interrupted_job_does_not_linger(start):
    agent = start("--linger=10m", seconds=600)
    wait_until(lambda: "my_app_steps_total" in fetch(f"{agent.url}/metrics")[1], "the job")
    agent.signal(signal.SIGTERM)
    assert agent.wait() == 143
    assert "goes on" not in agent.output()


def test_lingering_ends_by_itself(start):
    agent = start("--linger=2s", seconds=1, exit_code=0)
    assert agent.wait() == 0
    assert "the agent goes on for 2 s" in agent.output()


def health(agent):
    return json.loads(fetch(f"{agent.url}/api/v1/status")[1])["health"]["state"]
