#!/usr/bin/env python3
"""Measures the agent's page in Chromium with a large job: 1,000 workers and 1,000 families.

    PERSIA_BUILD_DIR=$PWD/build/release tests/bench/page_costs.py [WORKERS [FAMILIES [SECONDS]]]

Each worker is a real process that counts, and one of them is dead. From Chromium's own trace, with all rows of the table shown: the longest tasks of the
page's thread, and the share of the time in which it is busy. The page polls once in two seconds. Then the memory of the page's process, and of its
JavaScript. The last line is what was measured, as JSON.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "examples/demo")]

from servers import BUILD, Process, fetch, free_port, wait_until  # noqa: E402

PUSH_INTERVAL = 2  # seconds
_CATEGORIES = "toplevel,devtools.timeline,disabled-by-default-devtools.timeline"


def measure(build):
    """In a process of its own, because the workers are forks of it."""
    answer = subprocess.run([sys.executable, __file__], env={**os.environ, "PERSIA_BUILD_DIR": str(build)}, check=True, capture_output=True, text=True)
    return {f"page/{name}": [value] for name, value in json.loads(answer.stdout.splitlines()[-1]).items()}


def start_workers(count, families, directory):
    """Processes that count until they are killed; the first one has all families."""
    os.environ.update(PERSIA_METRICS_DIR=str(directory), PERSIA_JOB_NAME="page")
    sys.path.insert(0, str(BUILD / "lib/python"))
    import persia_metrics

    pids = []
    for rank in range(count):
        pid = os.fork()
        if pid == 0:
            os.environ["REPLICA_INDEX"] = str(rank)
            steps = persia_metrics.Counter("job", "steps_total", "Steps trained.")
            gauges = [persia_metrics.Gauge(f"layers_{i // 50}", f"norm_{i}", "Of a layer.") for i in range(families if rank == 0 else 0)]
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
        import websocket

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
    """The page's process, and the tasks of its thread: duration and processor time of each, in seconds."""
    trace = [event for message in events if message.get("method") == "Tracing.dataCollected" for event in message["params"]["value"]]
    threads = {(e["pid"], e["tid"]) for e in trace if e["name"] == "thread_name" and e["args"]["name"] == "CrRendererMain"}
    # A browser has several; the page's is the busiest.
    by_thread = {thread: [] for thread in threads}
    for event in trace:
        if event["name"] == "RunTask" and "dur" in event and (event["pid"], event["tid"]) in by_thread:
            by_thread[event["pid"], event["tid"]].append((event["dur"] / 1e6, event.get("tdur", event["dur"]) / 1e6))
    thread = max(by_thread, key=lambda each: sum(duration for duration, _ in by_thread[each]))
    return thread[0], by_thread[thread]


def private_bytes(pid):
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def trace_page(browser, address, workers, families, seconds):
    """What the page costs while it is shown for this time, by name: tasks in milliseconds, memory in megabytes."""
    browser.new_tab(1400, 1200)
    begin = time.monotonic()
    browser.open(f"http://{address}/")
    browser.wait_for(f"return document.querySelectorAll('.card').length >= {families}", "the cards", seconds=60)
    browser.wait_for("return document.querySelectorAll('#workers-body tr').length > 0", "the workers", seconds=60)
    shown = time.monotonic() - begin
    first = browser.text("#workers-body tr:first-child .badge")
    if first != "died":
        raise RuntimeError(f"the first worker of the table is {first}, not the dead one")
    browser.run("const all = document.querySelector('#workers-all'); if (all.checkVisibility()) all.click()")
    browser.wait_for(f"return document.querySelectorAll('#workers-body tr').length >= {workers}", "all workers", seconds=60)
    time.sleep(10)  # the first charts
    inspector = Inspector(browser.driver.capabilities["goog:chromeOptions"]["debuggerAddress"])
    inspector.ask("Tracing.start", traceConfig={"includedCategories": _CATEGORIES.split(",")}, transferMode="ReportEvents")
    time.sleep(seconds)
    inspector.ask("Tracing.end")
    inspector.wait("Tracing.tracingComplete")
    pid, found = tasks(inspector.events)
    longest = sorted((duration for duration, _ in found), reverse=True)
    print(f"longest tasks: {', '.join(f'{duration * 1000:.0f}' for duration in longest[:10])} ms", flush=True)
    return {
        "shown": shown,
        "task": longest[0] * 1000,
        "task processor": max(processor for _, processor in found) * 1000,
        "busy": 100 * sum(longest) / seconds,
        "memory": private_bytes(pid) / 1e6,
        "heap": browser.run("return performance.memory.usedJSHeapSize") / 1e6,
    }


def costs(workers=1000, families=1000, seconds=30):
    from browser import Browser

    directory = Path(tempfile.mkdtemp(prefix="persia-page-", dir="/dev/shm"))
    logs = Path(tempfile.mkdtemp(prefix="persia-page-"))
    address = f"127.0.0.1:{free_port()}"
    command = [BUILD / "agent/cli/persia-metrics-agent", "run", "--job=page", f"--metrics-dir={directory}", "--gateway=off"]
    command += [f"--listen={address}", f"--push-interval={PUSH_INTERVAL}"]
    pids = start_workers(workers, families, directory)
    try:
        with contextlib.ExitStack() as running:
            running.enter_context(Process(command, logs / "agent.log"))
            browser = Browser(logs / "browser.log")
            running.callback(browser.stop)

            def states():
                return [worker["state"] for worker in json.loads(fetch(f"http://{address}/api/v1/status")[1])["workers"]]

            wait_until(lambda: len(states()) == workers, "the workers", 120)
            os.kill(pids[workers * 3 // 4], signal.SIGKILL)
            wait_until(lambda: "died" in states(), "the death")
            return trace_page(browser, address, workers, families, seconds)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        shutil.rmtree(directory, ignore_errors=True)
        shutil.rmtree(logs, ignore_errors=True)


if __name__ == "__main__":
    print(json.dumps(costs(*(int(size) for size in sys.argv[1:]))))
