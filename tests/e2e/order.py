"""The order of tests: random, to show a test that depends on another. PERSIA_TEST_ORDER=SEED repeats the order of an earlier run.

The tests of a module stay together. Modules marked `long` start first, so that the end of a run does not wait for one of them. They are run
by `./run test --all`, and take more than two thirds of the time of all modules. Such a run prints at its end which modules should have the mark and
which should not.
"""

import collections
import os
import random

_MARK_FROM = 0.03  # of the time of all tests
_NO_MARK_BELOW = 0.01
_WHOLE_SUITE = 90  # modules; `./run test` has some 70


def pytest_configure(config):
    config.addinivalue_line("markers", "long: of a module that only `./run test --all` runs, before the others (order.py)")
    # xdist's workers inherit the environment: all have the same order.
    os.environ.setdefault("PERSIA_TEST_ORDER", str(random.randrange(1_000_000)))


def pytest_report_header():
    return f"order of tests: PERSIA_TEST_ORDER={os.environ['PERSIA_TEST_ORDER']}"


def pytest_collection_modifyitems(items):
    shuffled = random.Random(os.environ["PERSIA_TEST_ORDER"])
    places = {module: shuffled.random() for module in dict.fromkeys(item.path for item in items)}
    shuffled.shuffle(items)
    items.sort(key=lambda item: (item.get_closest_marker("long") is None, places[item.path]))


def pytest_terminal_summary(terminalreporter):
    seconds, marked = collections.Counter(), set()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if hasattr(report, "duration") and hasattr(report, "keywords"):
                module = report.nodeid.split("::")[0]
                seconds[module] += report.duration
                marked |= {module} if "long" in report.keywords else set()
    if len(seconds) < _WHOLE_SUITE:
        return
    for module, duration in seconds.most_common():
        share = duration / seconds.total()
        if module not in marked and share > _MARK_FROM or module in marked and share < _NO_MARK_BELOW:
            needed = "needs no" if module in marked else "needs a"
            terminalreporter.write_line(f"{module} {needed} mark `long`: {duration:.0f} s, {share:.1%} of the time of all tests")
