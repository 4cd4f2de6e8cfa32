"""Shared by the demos: the agent's command, the pages to open, and a job that can be interrupted."""

import signal
import subprocess

from servers import find_built, free_port

PUSH_INTERVAL = 1  # seconds


class Stopped(Exception):
    """A signal asked the demo to end."""


def stop_on_signals():
    def stop(number, _frame):
        raise Stopped(signal.Signals(number).name)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)


def agent_command(mode, job, gateway, segments):
    """The agent's command, exec or run, and the address of its pages."""
    page = f"127.0.0.1:{free_port()}"
    command = [find_built("persia-metrics-agent"), mode, f"--job={job}", f"--gateway={gateway.address}"]
    return [*command, f"--push-interval={PUSH_INTERVAL}", f"--listen={page}", f"--metrics-dir={segments}", "--log-level=warning"], page


def print_pages(prometheus, expression, gateway, page):
    print("Open in a browser:")
    print(f"  {prometheus.page()}?g0.expr={expression}&g0.tab=0&g0.range_input=2m   Prometheus")
    print(f"  {gateway.url}/   the PushGateway")
    print(f"  http://{page}/   the agent")
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
