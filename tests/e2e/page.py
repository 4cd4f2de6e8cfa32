"""For tests of the agent's page: scripts that take the name of a metric, waits for its chart, and the demo job beside it."""

import contextlib
import json
import os
import shutil
import signal
import tempfile
import threading
from pathlib import Path

from conftest import AGENT, EMBEDDING_JOB, environment
from servers import Gateway, Process, fetch, free_port, wait_until

import catalog

CARD = "document.querySelector(`[data-name=\"${arguments[0]}\"]`)"

# A chart's newest time with a value in each line of it that has any; 0 before there is one.
NEWEST = f"""
const card = {CARD}?.card;
if (!card || !card.graph) return 0;
return card.rows.reduce((newest, [time, ...values]) => (values.some((value) => value !== null) ? time : newest), 0);
"""

# Whether a pixel of one of the lines' colours is on the canvas.
DRAWN = f"""
const card = {CARD}.card;
const wanted = card.lines.map((line) => card.style(line).color.match(/\\w\\w/g).map((each) => parseInt(each, 16)));
return [...card.surface.querySelectorAll('canvas')].some((canvas) => {{
  // Of a copy: the console complains of a canvas that is drawn by the GPU and read more than once.
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', {{ willReadFrequently: true }});
  copy.drawImage(canvas, 0, 0);
  const {{ data }} = copy.getImageData(0, 0, canvas.width, canvas.height);
  for (let i = 0; i < data.length; i += 4) {{
    if (data[i + 3] > 90 && wanted.some((color) => color.every((part, k) => Math.abs(part - data[i + k]) < 12))) return true;
  }}
  return false;
}});
"""


def newest(browser, name):
    return browser.run(NEWEST, name)


def wait_for_points(browser, name, after=0):
    return wait_until(lambda: max(0, newest(browser, name) - after), f"points of {name} after {after}")


def families(address):
    return {family["name"] for family in json.loads(fetch(f"http://{address}/api/v1/metadata")[1])["families"]}


def _data_loader(segments):
    """The pid of the job's data loader, from the segments of the job's processes, whose names begin with their pids."""
    for path in segments.glob("*.seg"):
        pid = int(path.name.split("-")[0])
        if b"\0data_loader\0" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
    return None


@contextlib.contextmanager
def _slowed(pid):
    """Lets a process run for 20 ms of each 0.4 s."""
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
    """The demo job under an agent, running, once it has all metrics of the catalog. Gives the agent's address."""
    segments = Path(tempfile.mkdtemp(prefix="persia-e2e-", dir="/dev/shm"))
    address = f"127.0.0.1:{free_port()}"
    try:
        with Gateway(directory) as gateway, contextlib.ExitStack() as running:
            command = [AGENT, "exec", "--job=embedding_demo", f"--gateway={gateway.address}", f"--metrics-dir={segments}"]
            command += [f"--listen={address}", "--push-interval=0.5", "--"]
            command += ["nice", "-n19", EMBEDDING_JOB, "--duration=600"]
            command += ["--corpus=/usr/share/common-licenses", "--inject-nan=0.01", "--server-capacity=2000"]
            job = running.enter_context(Process(command, directory / "job.log", env=environment()))
            wait_until(lambda: fetch(f"http://{address}/-/ready")[0] == 200, "the agent")
            names = {entry.name for entry in catalog.entries()}
            wait_until(lambda: names <= families(address), "all metrics of the tables", 120)
            # The others wait for batches, and leave the processors to the browser.
            running.enter_context(_slowed(wait_until(lambda: _data_loader(segments), "the data loader's segment")))
            yield address
            assert job.running(), job.output()[-4000:]
    finally:
        shutil.rmtree(segments, ignore_errors=True)
