"""A training job, its agent, a PushGateway and a Prometheus on this machine, for a minute; then the books are compared."""

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import catalog
import table
from servers import ROOT, Gateway, Process, Prometheus, free_port

JOB = "embedding_demo"
PUSH_INTERVAL = 1  # seconds
BUILD = ROOT / "build/release"
NAMES = [entry.name for entry in catalog.entries()]


class Stopped(Exception):
    """Ctrl-C, or a request to end."""


def stop(number, _frame):
    raise Stopped(signal.Signals(number).name)


def positive(text):
    seconds = float(text)
    if not 1 <= seconds <= 7 * 86400:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds (1 to {7 * 86400})")
    return seconds


def find_built(name):
    found = [path for path in BUILD.rglob(name) if path.is_file() and os.access(path, os.X_OK)]
    if not found:
        sys.exit(f"demo: {name} is not under {BUILD}: ./run build")
    return found[0]


def wait_for(job):
    """Waits for the job. The first request to stop is passed on to it, so that it can end in order; the second is not waited for."""
    try:
        return job.popen.wait()
    except Stopped as reason:
        print(f"\ndemo: {reason}: asking the job to end; once more to end it at once", flush=True)
        job.signal(signal.SIGINT)
        return job.popen.wait()


def run(seconds, directory, segments):
    with Gateway(directory) as gateway, Prometheus(directory, gateway.address) as prometheus:
        page = f"127.0.0.1:{free_port()}"
        report_file = directory / "report.json"
        command = [find_built("persia-metrics-agent"), "exec", f"--job={JOB}", f"--gateway={gateway.address}"]
        command += [f"--push-interval={PUSH_INTERVAL}", f"--listen={page}", f"--metrics-dir={segments}", "--log-level=warning", "--"]
        command += [find_built("embedding_job"), f"--duration={seconds:g}", f"--report={report_file}"]
        print("Open in a browser:")
        print(f"  {prometheus.url}/graph?g0.expr=rate(lookup_rpc_time_cost_count[15s])&g0.tab=0&g0.range_input=2m   Prometheus")
        print(f"  {gateway.url}/   the PushGateway")
        print(f"  http://{page}/   the agent")
        print("Ctrl-C ends it early, in order.\n", flush=True)
        with Process(command, directory / "job.log", show=True) as job:
            code = wait_for(job)
        if code != 0:
            print(f"demo: the job ended with exit code {code}", file=sys.stderr)
        if not report_file.exists():
            sys.exit("demo: the job left no report to compare with")
        rows = table.rows(gateway.groups(), json.loads(report_file.read_text()), JOB)
    rows.sort(key=lambda row: NAMES.index(row.name.removesuffix("_sec")))
    print("\n" + table.render(rows) + "\n")
    wrong = table.problems(rows, NAMES)
    for problem in wrong:
        print(f"demo: {problem}", file=sys.stderr)
    if wrong or code != 0:
        return 1
    counts = sum(row.must_agree for row in rows)
    print(f"All {len(NAMES)} Persia metrics arrived; all {counts} counts agree with the job's own, to the last one.")
    return 0


def main():
    parser = argparse.ArgumentParser(prog="./run demo", description=__doc__)
    parser.add_argument("--seconds", type=positive, default=60, metavar="N", help="how long the job trains (default: 60)")
    seconds = parser.parse_args().seconds
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    prefix = f"persia-demo-{os.getpid()}-"
    directory = Path(tempfile.mkdtemp(prefix=prefix))
    segments = Path(tempfile.mkdtemp(prefix=prefix, dir="/dev/shm"))
    try:
        return run(seconds, directory, segments)
    except Stopped as reason:
        print(f"demo: ended by {reason}", file=sys.stderr)
        return 130
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        shutil.rmtree(segments, ignore_errors=True)


sys.exit(main())
