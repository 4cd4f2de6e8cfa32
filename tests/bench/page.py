#!/usr/bin/env python3
"""Measures the agent's page in Chromium with a large job: 1,000 workers and 1,000 families.

    PERSIA_BUILD_DIR=$PWD/build/release tests/bench/page.py [WORKERS [FAMILIES]]

Each worker is a real process that counts. From Chromium's own trace over a minute, with all rows of the table shown: the longest tasks of the page's
thread, and the share of the time in which it is busy. The page polls once in two seconds. Then the memory of the page's process, and of its JavaScript.
"""

import json
import os
import signal
import sys
import time
import urllib.request
from pathlib import Path

import websocket

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "examples/demo")]

from browser import Browser  # noqa: E402
from servers import Process, fetch, free_port, wait_until  # noqa: E402

BUILD = Path(os.environ.get("PERSIA_BUILD_DIR", ROOT / "build/release"))
sys.path.insert(0, str(BUILD / "lib/python"))
SECONDS = 60
# A task that takes longer is felt.
LIMIT_MS = 100
LIMIT_BYTES = 150e6
_CATEGORIES = "toplevel,devtools.timeline,disabled-by-default-devtools.timeline"


def start_workers(count, families, directory):
    """Processes that count until they are killed; the first one has all families."""
    os.environ.update(PERSIA_METRICS_DIR=directory, PERSIA_JOB_NAME="page")
    import persia_metrics

    pids = []
    for rank in range(count):
        pid = os.fork()
        if pid == 0:
            os.environ["REPLICA_INDEX"] = str(rank)
            steps = persia_metrics.Counter("steps_total", "Steps trained.", group="job")
            gauges = [persia_metrics.Gauge(f"norm_{i}", "Of a layer.", group=f"layers_{i // 50}") for i in range(families if rank == 0 else 0)]
            while True:
                steps.inc()
                for gauge in gauges:
                    gauge.inc()
                time.sleep(1)
        pids.append(pid)
    return pids


class Inspector:
    """The debugging protocol of a page."""

    def __init__(self, address):
        page = next(target for target in json.load(urllib.request.urlopen(f"http://{address}/json")) if target["type"] == "page")
        self._socket = websocket.create_connection(page["webSocketDebuggerUrl"], suppress_origin=True, timeout=60)
        self._number = 0
        self.events = []

    def ask(self, method, **parameters):
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        return self._until(lambda message: message.get("id") == self._number)["result"]

    def wait(self, method):
        return self._until(lambda message: message.get("method") == method)

    def _until(self, is_it):
        while True:
            message = json.loads(self._socket.recv())
            if is_it(message):
                return message
            self.events.append(message)


def tasks(events):
    """The tasks of the page's thread: beginning and duration, in seconds."""
    trace = [event for message in events if message.get("method") == "Tracing.dataCollected" for event in message["params"]["value"]]
    threads = {(e["pid"], e["tid"]) for e in trace if e["name"] == "thread_name" and e["args"]["name"] == "CrRendererMain"}
    # A browser has several; the page's is the busiest.
    by_thread = {thread: [] for thread in threads}
    for event in trace:
        if event["name"] == "RunTask" and "dur" in event and (event["pid"], event["tid"]) in by_thread:
            by_thread[event["pid"], event["tid"]].append((event["ts"] / 1e6, event["dur"] / 1e6))
    thread = max(by_thread, key=lambda each: sum(duration for _, duration in by_thread[each]))
    return thread[0], by_thread[thread]


def private_bytes(pid):
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def main(workers, families):
    directory = f"/dev/shm/persia-page-{os.getpid()}"
    address = f"127.0.0.1:{free_port()}"
    agent = BUILD / "agent/cli/persia-metrics-agent"
    log = Path(f"/tmp/persia-page-{os.getpid()}.log")
    command = [agent, "run", "--job=page", f"--metrics-dir={directory}", "--gateway=off", f"--listen={address}", "--push-interval=2"]
    pids = start_workers(workers, families, directory)
    server = Process(command, log)
    browser = Browser(log.with_suffix(".browser"))
    try:
        wait_until(lambda: fetch(f"http://{address}/-/ready")[0] == 200, "the agent")
        wait_until(lambda: len(json.loads(fetch(f"http://{address}/api/v1/status")[1])["workers"]) == workers, "the workers", 120)
        browser.new_tab(1400, 1200)
        begin = time.monotonic()
        browser.open(f"http://{address}/")
        browser.wait_for(f"return document.querySelectorAll('.card').length >= {families}", "the cards", 60)
        browser.wait_for("return document.querySelectorAll('#workers-body tr').length > 0", "the workers", 60)
        print(f"{workers} workers and {families} families: on the page after {time.monotonic() - begin:.1f} s", flush=True)
        browser.run("document.querySelector('#workers-all').click()")
        browser.wait_for(f"return document.querySelectorAll('#workers-body tr').length >= {workers}", "all workers", 60)
        time.sleep(10)  # the first charts
        inspector = Inspector(browser.driver.capabilities["goog:chromeOptions"]["debuggerAddress"])
        inspector.ask("Tracing.start", traceConfig={"includedCategories": _CATEGORIES.split(",")}, transferMode="ReportEvents")
        time.sleep(SECONDS)
        inspector.ask("Tracing.end")
        inspector.wait("Tracing.tracingComplete")
        pid, found = tasks(inspector.events)
        longest = sorted((duration for _, duration in found), reverse=True)
        print(f"longest tasks: {', '.join(f'{duration * 1000:.0f}' for duration in longest[:10])} ms (limit {LIMIT_MS})")
        print(f"busy: {100 * sum(longest) / SECONDS:.1f} % of a processor")
        heap = browser.run("return performance.memory.usedJSHeapSize")
        memory = private_bytes(pid)
        print(f"memory: {memory / 1e6:.0f} MB private (limit {LIMIT_BYTES / 1e6:.0f}), {heap / 1e6:.0f} MB of JavaScript")
        return 1 if longest[0] * 1000 > LIMIT_MS or memory > LIMIT_BYTES else 0
    finally:
        browser.stop()
        server.signal(signal.SIGTERM)
        server.wait()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


if __name__ == "__main__":
    sizes = [int(size) for size in sys.argv[1:]] + [1000, 1000][len(sys.argv) - 1 :]
    sys.exit(main(*sizes))
