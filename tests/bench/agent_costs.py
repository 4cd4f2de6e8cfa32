"""The agent's costs: a push and curl's, a scrape and the gateway's, memory, the pipe."""

import collections
import http.server
import json
import resource
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from jobs import Agent, Workers, clean_environment, folders
from servers import Gateway, fetch, wait_until

SERIES = 100_000
PROCESSES = 4
PUSHES = 12
PUSH_SECONDS = 3  # between two pushes, in which curl's comes
FIRST_PUSHES = 3  # in which buffers reach their sizes
SCRAPES = 8
QUIET_SECONDS = 15  # until the agent takes the job for idle
IDLE_SECONDS = 20
COLLECTIONS = 8
PIPE_LINES = 4_500_000


class _Keeper(http.server.ThreadingHTTPServer):
    """A gateway that records pushes, to repeat them. It understands protobuf, or only text."""

    def __init__(self, takes_protobuf):
        self.pushed = {}  # path: (headers, body)

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_PUT(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.server.pushed[self.path] = (dict(self.headers), body)
                self.answer()

            def do_GET(self):
                self.answer(b'{"status": "success", "data": {"build_information": {}}}' if takes_protobuf and "status" in self.path else b"")

            do_POST = do_PUT

            def answer(self, body=b""):
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


def push_as_sent(build, directory, segments, takes_protobuf):
    """{path: (headers, body)} of one push of the job."""
    keeper = _Keeper(takes_protobuf)
    options = [f"--gateway=127.0.0.1:{keeper.server_port}", "--push-interval=1", "--history=0"]
    try:
        with Agent(build, directory, segments, *options) as agent:
            wait_until(lambda: agent.pushes() >= 2, "two pushes", 60)
        content_types = {headers["Content-Type"].partition(";")[0] for headers, _ in keeper.pushed.values()}
        assert content_types == {"application/vnd.google.protobuf" if takes_protobuf else "text/plain"}, content_types
        return keeper.pushed
    finally:
        keeper.shutdown()
        keeper.server_close()


def curl(*words):
    """curl's times in seconds for its requests, one after another on one connection."""
    answer = subprocess.run(["curl", "-sSf", *words], check=True, capture_output=True, text=True)
    return sum(float(line) for line in answer.stdout.split())


def children_seconds():
    """Processor time of ended children."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def push_by_curl(gateway, pushed, folder):
    words = []
    for number, (path, (headers, body)) in enumerate(pushed.items()):
        file = Path(folder) / f"body_{number}"
        if not file.exists():
            file.write_bytes(body)
        words += ["--next"] if words else []
        words += ["-sSf", "-X", "PUT", "--data-binary", f"@{file}", "-o", "/dev/null", "-w", "%{time_total}\n", "-H", "Expect:"]
        for name in ("Content-Type", "Content-Encoding"):
            if name in headers:
                words += ["-H", f"{name}: {headers[name]}"]
        words.append(gateway.url + path)
    return curl(*words)


class Pushed:
    """An agent's pushes so far, and their costs."""

    def __init__(self, agent):
        gateway = agent.status()["gateway"]
        self.count = gateway["pushes"]
        self.seconds = gateway["last_push_seconds"]
        self.error = gateway["last_error"]
        self.processor = agent.processor_seconds()


def push(build):
    """Measures pushes of an otherwise idle agent, in turns with curl's, and its memory."""
    results = collections.defaultdict(list)
    with folders() as (directory, segments), Workers(build, segments, SERIES, PROCESSES) as workers:
        texts = push_as_sent(build, directory, segments, takes_protobuf=False)
        lines = sum(not line.startswith(b"#") for _, body in texts.values() for line in body.splitlines())
        pushed = push_as_sent(build, directory, segments, takes_protobuf=True)
        with Gateway(directory) as gateway, tempfile.TemporaryDirectory(dir="/dev/shm") as bodies:
            options = [f"--gateway={gateway.address}", f"--push-interval={PUSH_SECONDS}", "--history=0"]
            with Agent(build, directory, segments, *options) as agent:
                for _ in range(FIRST_PUSHES):
                    agent.await_push()
                ended = time.monotonic()
                before = Pushed(agent)
                for number in range(1, PUSHES + 1):
                    workers.change()
                    # A query is work for the agent too, so none is made while it pushes.
                    time.sleep(max(0, ended + number * PUSH_SECONDS + 0.5 - time.monotonic()))
                    wait_until(lambda: agent.pushes() > before.count, "a push", 60, 0.25)
                    now = Pushed(agent)
                    assert not now.error, f"a push failed: {now.error}"
                    spent = (now.processor - before.processor) / (now.count - before.count)
                    results["push/processor"].append(spent * 1e9 / lines)
                    results["push/ours"].append(now.seconds * 1000)
                    spent = children_seconds()
                    curl("-o", "/dev/null", "-w", "%{time_total}", "file:///dev/null")
                    start = children_seconds() - spent
                    results["push/curl"].append(push_by_curl(gateway, pushed, bodies) * 1000)
                    # Without the costs of the start.
                    results["push/curl processor"].append((children_seconds() - spent - 2 * start) * 1e9 / lines)
                    before = now
                results["memory/pushing"].append(agent.anonymous_mib())
                for _ in range(3):
                    workers.change()
                    agent.await_push()
                    curl("-o", "/dev/null", "-w", "%{time_total}", agent.url + "/metrics")
                results["memory/scraped"].append(agent.anonymous_mib())
    return results


def processor_milliseconds_of_scrape(agent):
    """Of the agent, with the collection, for a scrape as Prometheus 3 makes it."""
    before = agent.processor_seconds()
    headers = ["-H", "Accept-Encoding: gzip", "-H", "Accept: application/openmetrics-text;version=1.0.0;escaping=allow-utf-8"]
    curl("-o", "/dev/null", "-w", "%{time_total}", *headers, agent.url + "/metrics")
    return (agent.processor_seconds() - before) * 1000


def scrape(build):
    results = collections.defaultdict(list)
    with folders() as (directory, segments), Workers(build, segments, SERIES, PROCESSES) as workers, Gateway(directory) as gateway:
        with Agent(build, directory, segments, f"--gateway={gateway.address}", "--push-interval=600", "--history=0") as agent:
            wait_until(lambda: agent.pushes() > 0, "the first push", 60)
            for who, url in (("the agent", agent.url), ("the gateway", gateway.url)):
                shown = sum(not line.startswith("#") for line in fetch(url + "/metrics", timeout=60)[1].splitlines())
                assert SERIES <= shown < 1.02 * SERIES, f"{who} shows {shown} series"
            for _ in range(SCRAPES):
                workers.change()
                time.sleep(1.05)  # scrapes within a second share a collection
                for who, url in (("ours", agent.url), ("gateway", gateway.url)):
                    results[f"scrape/{who}"].append(SERIES / curl("-o", "/dev/null", "-w", "%{time_total}", url + "/metrics"))
            for _ in range(SCRAPES):
                workers.change()
                time.sleep(1.05)
                results["scrape/gzip processor"].append(processor_milliseconds_of_scrape(agent))
    return results


def idle(build):
    results = collections.defaultdict(list)
    with folders() as (directory, segments), Workers(build, segments, 100, 1), Gateway(directory) as gateway:
        with Agent(build, directory, segments, f"--gateway={gateway.address}") as agent:
            agent.await_push()
            time.sleep(QUIET_SECONDS)
            spent = agent.processor_seconds()
            time.sleep(IDLE_SECONDS)
            results["idle/processor"].append((agent.processor_seconds() - spent) / IDLE_SECONDS * 100)
            results["idle/memory"].append(agent.anonymous_mib())
    return results


def collections_of(agent):
    """How many the agent has made, and their seconds in all."""
    name = "persia_agent_collect_duration_seconds"
    return agent.value(f"{name}_count"), agent.value(f"{name}_sum")


def collect(build):
    """Collections of each second, in which all values changed, and none did."""
    results = {}
    with folders() as (directory, segments), Workers(build, segments, SERIES, PROCESSES) as workers:
        with Agent(build, directory, segments, "--gateway=off", "--push-interval=2") as agent:
            # The first collection names all series. It is so dear that the next one is that of the next push interval.
            wait_until(lambda: collections_of(agent)[0] > 5, "the first collections", 60, 1)
            for what, change in (("changed", workers.change), ("unchanged", lambda: None)):
                count, seconds = collections_of(agent)
                for _ in range(COLLECTIONS):
                    change()
                    time.sleep(1)
                counted, spent = collections_of(agent)
                results[f"collect/{what}"] = [(spent - seconds) / (counted - count) * 1000]
    return results


def good_lines(agent):
    return agent.value("persia_agent_fifo_lines_total", 'result="good"')


def pipe(build):
    """Writes lines of `emit` as fast as possible, in writes that the kernel keeps whole."""
    results = collections.defaultdict(list)
    line = b'{"alexnet.batchsize16.latency": 12.5}\n'
    chunk = line * (4096 // len(line))
    with folders() as (directory, segments):
        fifo = directory / "fifo"
        with Agent(build, directory, segments, "--gateway=off", f"--fifo={fifo}") as agent:
            lost = 0
            for _ in range(3):
                before = good_lines(agent)
                written = 0
                began = changed = time.perf_counter()
                with open(fifo, "wb", buffering=0) as writer:
                    while written < PIPE_LINES // 3:
                        writer.write(chunk)
                        written += len(chunk) // len(line)
                read = 0
                # /metrics is up to a second old: if it does not change for longer, no line has arrived.
                while read < written and time.perf_counter() - changed < 5:
                    now = good_lines(agent) - before
                    if now != read:
                        read, changed = now, time.perf_counter()
                    time.sleep(0.01)
                results["pipe/rate"].append(read / (changed - began))
                lost += written - read
    results["pipe/lost"].append(lost)
    return results


def _printed(program, times):
    """Runs the program several times, each in a new directory. Returns the number that each run prints."""
    found = []
    for _ in range(times):
        with folders() as (_, segments):
            env = clean_environment(PERSIA_METRICS_DIR=str(segments))
            found.append(float(subprocess.run([program], env=env, check=True, capture_output=True, text=True).stdout))
    return found


def start(build):
    return {"start/ours": _printed(build / "tests/bench/bench_start", 15)}


def callbacks(build):
    return {"callbacks/ours": _printed(build / "tests/bench/bench_callbacks", 5)}


def values(build):
    printed = subprocess.run([build / "tests/bench/bench_worker_values"], check=True, capture_output=True, text=True).stdout
    return {f"values/{name}": found for name, found in json.loads(printed).items()}
