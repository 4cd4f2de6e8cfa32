"""The result of one test case, and the files that pytest's sessions write them to."""

import dataclasses
import json
import signal


@dataclasses.dataclass(frozen=True)
class Case:
    suite: str
    name: str
    outcome: str  # "passed", "failed" or "not run": the machine lacks a need of the test (tests/e2e/needs.py)
    seconds: float = 0
    command: tuple = ()  # what runs this case alone
    in_order: tuple = ()  # what runs it after the same others as before
    never_forgiven: str = ""  # why a case that failed must not pass by running it again, for example "a crash"
    folders: tuple = ()  # what the case guards: a change of them is not forgiven either


def read(file):
    """The lines of a file of results as dicts. The last line may be cut, if its process was killed."""
    try:
        lines = file.read_text().split("\n")
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in lines[:-1]]


def end_fixtures_on_sigterm():
    """In a process of pytest: a session that is told to end ends what its fixtures have started."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


class Recorder:
    """A plugin of pytest that appends each finished test to a file as one line: its id, outcome, seconds and message."""

    def __init__(self, path):
        self._file = open(path, "a", buffering=1)
        self._parts = {}

    def pytest_runtest_logreport(self, report):
        """Setup, call and teardown are reported one after another; a test has failed if one of them has. xdist reports a test that ended its process."""
        outcomes, seconds, message, never = self._parts.setdefault(report.nodeid, (set(), [], [], set()))
        outcomes.add(report.outcome)
        seconds.append(getattr(report, "duration", 0))
        if report.outcome == "skipped":
            message.append(skip_message(report))
            never |= {"a skip that names no need"} if not message[-1].startswith("needs ") else set()
        if report.outcome == "failed" and "Timeout >" in report.longreprtext:
            never.add("a hang")
        if report.when == "???":
            never.add("a crash")
        if report.when in ("teardown", "???"):
            del self._parts[report.nodeid]
            row = {"id": report.nodeid, "outcome": outcome(outcomes, message), "seconds": round(sum(seconds), 3), "never": ", ".join(never)}
            self._file.write(json.dumps(row) + "\n")

    def pytest_sessionfinish(self):
        """The last line, so that a session whose process ended before does not look like one that has run all."""
        self._file.write(json.dumps({"id": None}) + "\n")

    def pytest_collectreport(self, report):
        """A module that cannot be imported has failed."""
        if report.failed:
            self._file.write(json.dumps({"id": report.nodeid or "collection", "outcome": "failed", "seconds": 0, "never": ""}) + "\n")


def outcome(outcomes, message):
    """Of all parts of a test. A skip counts as not run only if it names a need; any other is a failure."""
    if "failed" in outcomes or "skipped" in outcomes and not "".join(message).startswith("needs "):
        return "failed"
    return "not run" if "skipped" in outcomes else "passed"


def skip_message(report):
    text = report.longrepr[2] if isinstance(report.longrepr, (tuple, list)) else ""
    return text.removeprefix("Skipped: ")
