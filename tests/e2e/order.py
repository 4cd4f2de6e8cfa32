"""The order of modules: those marked `long` start first, so that the end of a run does not wait for one of them.

A run of the whole suite prints at its end which modules should have the mark and which should not.
"""

import collections

_MARK_FROM = 0.03  # of the time of all tests
_NO_MARK_BELOW = 0.01
_WHOLE_SUITE = 40  # modules


def pytest_configure(config):
    config.addinivalue_line("markers", "long: of a module that starts before the others (order.py)")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


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
