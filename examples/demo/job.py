"""Shared by the demos: the agent's command, the pages to open, the alerts as they come, and a job that can be interrupted."""

import contextlib
import http.client
import signal
import subprocess
import threading
import time

from servers import ROOT, find_built, free_port

PUSH_INTERVAL = 1  # seconds
RULES = sorted((ROOT / "config/prometheus/rules").glob("*.yml"))
HANG_WAIT = "vector(840)"  # of thresholds.yml, in seconds


class Stopped(Exception):
    """A signal asked the demo to end."""


def stop_on_signals():
    def stop(number, _frame):
        raise Stopped(signal.Signals(number).name)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)


def agent_command(mode, job, gateway, segments, *flags):
    """The agent's command, exec or run, with further flags, and the address of its pages."""
    page = f"127.0.0.1:{free_port()}"
    command = [find_built("persia-metrics-agent"), mode, f"--job={job}", f"--gateway={gateway.address}"]
    return [*command, f"--push-interval={PUSH_INTERVAL}", f"--listen={page}", f"--metrics-dir={segments}", "--log-level=warning", *flags], page


def rules_of_a_short_job(directory):
    """The shipped rules, which tell a hang as soon as the agent does: there is no long evaluation from which it would have to learn."""
    (thresholds,) = [path for path in RULES if path.name == "thresholds.yml"]
    text = thresholds.read_text()
    assert HANG_WAIT in text
    changed = directory / thresholds.name
    changed.write_text(text.replace(HANG_WAIT, "vector(0)"))
    return [changed if path == thresholds else path for path in RULES]


def say(text):
    print(f"demo: {time.strftime('%H:%M:%S')} {text}", flush=True)


@contextlib.contextmanager
def printed_alerts(prometheus):
    """Prints each alert of the shipped rules when it becomes pending, fires and ends. Gives the set of their names so far."""
    over = threading.Event()
    seen = set()

    def watch():
        known = {}
        while not over.wait(1):
            try:
                alerts = prometheus.alerts()
            except (OSError, http.client.HTTPException, ValueError):
                continue  # it is ending
            now = {}
            for alert in alerts:
                labels = alert["labels"]
                who = " ".join(labels[name] for name in ("role", "instance") if name in labels)
                now[labels["alertname"], who] = (alert["state"], alert["annotations"]["summary"])
            for (name, who), (state, summary) in now.items():
                seen.add(name)
                if known.get((name, who), ("",))[0] != state:
                    say(f"alert {name} is {state}: {summary} {who}".rstrip())
            for name, who in known.keys() - now.keys():
                say(f"alert {name} has ended: {who}".rstrip(": "))
            known = now

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def print_pages(prometheus, expression, gateway, page):
    print("Open in a browser:")
    print(f"  {prometheus.page()}?g0.expr={expression}&g0.tab=0&g0.range_input=2m   Prometheus")
    print(f"  {gateway.url}/   the PushGateway")
    print(f"  http://{page}/   the agent: how the job is, and why")
    print(f"  {prometheus.page().removesuffix('graph').removesuffix('query')}alerts   the shipped alerts; changes are printed here")
    print("Ctrl-C ends the job early, in order.\n", flush=True)


def wait_for(job, seconds=None):
    """Waits for the job and returns its exit code, or None if it still runs after `seconds`.

    The first signal is forwarded to the job, so that it can end in order. A second one ends the wait.
    """
    try:
        return job.popen.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    except Stopped as reason:
        print(f"\ndemo: {reason}: waiting for the job to end; a second signal ends it immediately", flush=True)
        job.signal(signal.SIGINT)
        return job.popen.wait()
