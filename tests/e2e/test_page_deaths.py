"""The page's list of processes that died."""

SOURCE = """
import sys
from persia_metrics import Counter, events
Counter("my_app", "steps").inc()
events.record("my_app", "checkpoint", {"path": "<b>7</b>"})
raise ValueError("<i>bad</i> row")
"""


def test_a_death_is_shown_with_its_words_and_what_it_left(job, browse):
    agent = job.agent()
    browser = browse(agent.url)
    browser.wait_for("return document.querySelector('#job').innerText !== ''", "the status")
    assert browser.run("return document.querySelector('#deaths').hidden"), "without a death"
    job.python(SOURCE).wait()
    browser.wait_for("return document.querySelectorAll('#deaths-list > li').length === 1", "the death")
    assert browser.run("return document.querySelector('#deaths').open"), "below the charts, and open"
    text = browser.run("return document.querySelector('#deaths-list').innerText")
    assert "trainer rep_0 died: ValueError: <i>bad</i> row (worker_1.py:6 in <module>)" in text
    assert "Look at: the traceback in the log of the process." in text
    left = browser.run("const left = document.querySelector('#deaths-list details'); left.open = true; return left.innerText")
    assert "my_app checkpoint: path=<b>7</b>" in left
    assert browser.complaints() == []
