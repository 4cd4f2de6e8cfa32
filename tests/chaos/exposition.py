"""Reads expositions: checks that no counter falls, and compares the last one with the ledgers."""

import http.client
import re
import threading
import time
from fractions import Fraction

# The workers' metrics.
_WORKERS = ("chaos_", "persia_events_total", "persia_event_interval_seconds")
# Counts of a program itself begin at zero when it starts: those of the agent and the gateway, and what the kernel counts of a worker.
_OF_THE_KERNEL = ("cpu_seconds", "minor_page_faults", "major_page_faults", "io_wait_seconds", "run_queue_wait_seconds", "read_bytes", "write_bytes", "context_switches")
_THEIR_OWN = ("persia_agent_", "process_", "go_", "pushgateway_", "promhttp_", "prometheus_", *(f"persia_process_{name}_total" for name in _OF_THE_KERNEL))
_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
# Labels that the agent and the gateway add; the ledgers do not have them.
_ADDED = {"job", "ip_addr"}


def scrape(address, timeout=5):
    """The body of /metrics, or None if there is no complete answer."""
    connection = http.client.HTTPConnection(address, timeout=timeout)
    try:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        body = answer.read().decode()
        return body if answer.status == 200 else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


class Watcher(threading.Thread):
    """Scrapes all the time and notes each counter, bucket, count and sum of the job that is below its former value.

    A series that is absent did not fall: the gateway keeps nothing on disk. When it returns, it must not be below its former value.
    """

    def __init__(self, name, address, interval=0.1):
        super().__init__(name=name, daemon=True)
        self._address, self._interval = address, interval
        self._highest = {}
        self._end = threading.Event()
        self.scrapes = 0
        self.falls = []
        self.broken = None

    def run(self):
        while not self._end.wait(self._interval):
            body = scrape(self._address)
            try:
                if body is not None:
                    self._look(body)
            except Exception as error:  # a parse error is a failure of the test, and ends it
                self.broken = f"{self.name}: {error!r}"
                return

    def _look(self, body):
        self.scrapes += 1
        highest = self._highest
        watched = False
        for line in body.splitlines():
            if line.startswith("#"):
                if line.startswith("# TYPE "):
                    _, _, name, kind = line.split(" ")
                    watched = kind in ("counter", "histogram") and not name.startswith(_THEIR_OWN)
                continue
            if not watched:
                continue
            series, _, text = line.rpartition(" ")
            value = float(text)
            before = highest.get(series)
            if before is not None and value < before:
                self.falls.append(f"{time.strftime('%H:%M:%S')} {self.name}: {series} fell from {before!r} to {value!r}")
            highest[series] = value

    def end(self):
        self._end.set()
        self.join()


def parse(body):
    """(name, labels as a frozenset of pairs, `le` as a number) -> value, of the workers' metrics."""
    samples = {}
    for line in body.splitlines():
        if not line.startswith(_WORKERS):
            continue
        name, labels, value = _SAMPLE.match(line).groups()
        pairs = ((key, float(text) if key == "le" else text) for key, text in _LABEL.findall(labels or ""))
        samples[name, frozenset(pair for pair in pairs if pair[0] not in _ADDED)] = float(value)
    return samples


def compare(body, totals):
    """The samples that are missing, that are doubled, and other problems: three lists of lines."""
    found = parse(body)
    lost, doubled, wrong = [], [], []
    for at, (least, most) in sorted(totals.expected().items(), key=str):
        value = found.pop(at, None)
        # Each double is exact; the total is rounded once.
        low, high = float(Fraction(least)), float(Fraction(most))
        line = f"{_name(at)}: expected {low!r}" + (f" to {high!r}" if high != low else "") + f", found {value!r}"
        if value is None:
            if low > 0:
                lost.append(line)
        elif value < low:
            lost.append(line)
        elif value > high:
            doubled.append(line)
    for at, values in totals.gauges():
        value = found.pop(at, None)
        if value not in values:
            wrong.append(f"{_name(at)} is {value!r}, which no process of that identity had set last")
    for at, value in found.items():
        if not at[0].startswith("persia_event_interval_seconds") and value != 0:
            wrong.append(f"{_name(at)} is {value!r}, which no worker counted")
    return lost, doubled, wrong


def _name(at):
    return at[0] + "{" + ",".join(f'{key}="{value}"' for key, value in sorted(at[1], key=str)) + "}"
