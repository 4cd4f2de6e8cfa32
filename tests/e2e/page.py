"""Scripts and waits for tests of the agent's page, and the demo job under an agent. The scripts take the name of a metric."""

import contextlib
import json
import os
import re
import shutil
import signal
import tempfile
import threading
from pathlib import Path

from conftest import AGENT, EMBEDDING_JOB, environment
from servers import Gateway, Process, fetch, free_port, wait_until

import catalog

CARD = "document.querySelector(`[data-name=\"${arguments[0]}\"]`)"

# The newest time at which a chart has a value; 0 before there is one.
NEWEST = f"""
const card = {CARD}?.card;
if (!card || !card.graph) return 0;
return card.rows.reduce((newest, [time, ...values]) => (values.some((value) => value !== null) ? time : newest), 0);
"""

# Whether the canvas has a pixel in the colour of one of the lines.
DRAWN = f"""return (async () => {{
const {{ lineStyle }} = await import('/assets/line_style.js');
const card = {CARD}.card;
const wanted = card.lines.map((line) => lineStyle(card, line).color.match(/\\w\\w/g).map((each) => parseInt(each, 16)));
return [...card.surface.querySelectorAll('canvas')].some((canvas) => {{
  // From a copy: the browser warns of repeated reads of a canvas that the GPU draws.
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', {{ willReadFrequently: true }});
  copy.drawImage(canvas, 0, 0);
  const {{ data }} = copy.getImageData(0, 0, canvas.width, canvas.height);
  for (let i = 0; i < data.length; i += 4) {{
    if (data[i + 3] > 90 && wanted.some((color) => color.every((part, k) => Math.abs(part - data[i + k]) < 12))) return true;
  }}
  return false;
}});
}})();
"""


def newest(browser, name):
    return browser.run(NEWEST, name)


def wait_for_points(browser, name, after=0):
    return wait_until(lambda: max(0, newest(browser, name) - after), f"points of {name} after {after}")


RANKS = """
import json, os, sys, time
from persia_metrics import Counter
parent, pids = os.getpid(), []
ready, counted = os.pipe()
for rank, pause in enumerate(json.loads(os.environ["PAUSES"])):
    pids.append(os.fork())
    if pids[-1] == 0:
        os.environ["REPLICA_INDEX"] = str(rank)
        steps = Counter("my_app", "steps_total", "Steps trained.")
        steps.inc()
        os.write(counted, b".")
        while os.getppid() == parent:
            steps.inc()
            time.sleep(pause)
        os._exit(0)
for _ in pids:
    os.read(ready, 1)
print(f"pids {json.dumps(pids)} counted", flush=True)
sys.stdin.readline()
"""


def start_ranks(job, pauses):
    """Starts ranks that count a step and pause, each by its number of seconds. Returns their pids once all have counted."""
    launcher = job.python(RANKS, PAUSES=json.dumps(pauses))
    launcher.wait_for("counted")
    return json.loads(re.search(r"pids (.*) counted", launcher.output())[1])


def families(address):
    return {family["name"] for family in json.loads(fetch(f"http://{address}/api/v1/metadata")[1])["families"]}


def _data_loader(segments):
    """The pid of the job's data loader. The names of segments begin with the pid of their process."""
    for path in segments.glob("*.seg"):
        pid = int(path.name.split("-")[0])
        if b"\0data_loader\0" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
    return None


@contextlib.contextmanager
def _slowed(pid):
    """Lets a process run for 20 ms in every 0.4 s."""
    over = threading.Event()

    def alternate():
        while not over.wait(0.02):
            os.kill(pid, signal.SIGSTOP)
            over.wait(0.38)
            os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=alternate)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextlib.contextmanager
def demo_job(directory):
    """Runs the demo job under an agent. Yields the agent's address once the job has all metrics of the catalog."""
    segments = Path(tempfile.mkdtemp(prefix="persia-e2e-", dir="/dev/shm"))
    address = f"127.0.0.1:{free_port()}"
    try:
        with Gateway(directory) as gateway, contextlib.ExitStack() as running:
            command = [AGENT, "exec", "--job=embedding_demo", f"--gateway={gateway.address}", f"--metrics-dir={segments}"]
            command += [f"--listen={address}", "--push-interval=0.5", "--"]
            command += [EMBEDDING_JOB, "--duration=600"]
            command += ["--corpus=/usr/share/common-licenses", "--inject-nan=0.01", "--server-capacity=2000"]
            job = running.enter_context(Process(command, directory / "job.log", env=environment()))
            wait_until(lambda: fetch(f"http://{address}/-/ready")[0] == 200, "the agent")
            names = {entry.name for entry in catalog.entries()}
            wait_until(lambda: names <= families(address), "all metrics of the tables", 120)
            # The other processes wait for batches, which leaves the processors to the browser.
            running.enter_context(_slowed(wait_until(lambda: _data_loader(segments), "the data loader's segment")))
            yield address
            assert job.running(), job.output()[-4000:]
    finally:
        shutil.rmtree(segments, ignore_errors=True)
