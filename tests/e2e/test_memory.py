"""The memory that bytes of others take is bounded by `max_foreign_bytes`: a table of hostile input, each row under a limit of data memory.

The limit is what the agent takes without the hostile input, and the setting. In each row the values of the living worker stay whole, and the
agent lives.
"""

import contextlib
import dataclasses
import fcntl
import itertools
import json
import os
import re
import resource
import socket
import struct
import threading
import time
import typing
import urllib.request
from pathlib import Path

import hostile_bytes as hostile
import pytest
from conftest import AGENT, PYTHON
from servers import fetch, wait_until

MIB = 1 << 20
RUN = "r"
GROUP, OTHER = 47112, 47111


@dataclasses.dataclass
class Row:
    """`before` makes files while no agent runs, `meanwhile` acts on a running one. `says`: what the log has of it."""

    before: typing.Callable = None
    meanwhile: typing.Callable = None
    says: str = ""
    flags: tuple = ()
    living: typing.Callable = None
    limit: int = 64 * MIB


def data_bytes(agent):
    return int(re.search(r"VmData:\s+(\d+)", Path(f"/proc/{agent.pid}/status").read_text())[1]) * 1024


def limited(directory, size):
    """A program: the agent with a limit of data memory."""
    wrapper = directory / "limited.py"
    words = f"import os, resource, sys\nresource.setrlimit(resource.RLIMIT_DATA, ({size}, {size}))\nos.execv({str(AGENT)!r}, sys.argv)\n"
    wrapper.write_text(f"#!{PYTHON}\n{words}")
    wrapper.chmod(0o755)
    return wrapper


# Segments.


def ended(job, number, records, chunks=1, replica=None, **more):
    records = hostile.identity(number if replica is None else replica, job.name) + records
    path = job.segments / f"999{number:03}-{number:016x}.seg"
    hostile.segment(path, records, chunks, **more)
    return path


def long_labels(count):
    """Labels of 28 KiB."""
    return [(f"b{number:02}", "x" * 1000) for number in range(count)]


def many_ended(job, agent):
    records, chunks = hostile.gauges(60, long_labels(28))
    for number in range(1, 80):
        ended(job, number, records, chunks)


def one_huge(end=b""):
    return lambda job, agent: ended(job, 1, hostile.record(99, bytes(MIB - 16)) * 100 + end)


def many_chunks(job, agent):
    ended(job, 1, *hostile.gauges(20_000, per_chunk=1))


def many_events(job, agent):
    ended(job, 1, hostile.gauges(1)[0], events=[hostile.event(ticket, 190) for ticket in range(20_000)])


def lock(path):
    """Holds a segment's lock, as a living writer does."""
    descriptor = os.open(path, os.O_RDWR)
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    return descriptor


def of_the_group(job, agent):
    path = ended(job, 1, *hostile.gauges(2000, long_labels(28)))
    path.chmod(0o660)
    os.chown(path, OTHER, GROUP)
    return lock(path)


def share_with_group(job):
    os.chown(job.segments, 0, GROUP)
    job.segments.chmod(0o2770)


# State. The names of the files are those of an agent without `state_dir`.


def zeros(name):
    def make(job):
        with open(job.segments / name, "wb") as file:
            file.truncate(1 << 30)

    return make


def state_of(*records):
    return lambda job: hostile.state(job.segments / "agent.state", RUN, *(record() for record in records))


def ordinals(job):
    path = job.segments / "agent.state"
    hostile.state(path, RUN, *((5, hostile.text(f"{number:x}") + bytes(12)) for number in range(200_000)))


def journal_of(name, magic, payload):
    def make(job):
        hostile.state(job.segments / "agent.state", RUN)
        hostile.journal(job.segments / name, magic, (1, payload()))

    return make


def positions():
    return struct.pack("<I", 1_500_000) + b"".join(hostile.text(struct.pack("<I", number)) + bytes(8) for number in range(1_500_000))


def groups():
    one = (hostile.text(struct.pack("<I", number)) + bytes(8) for number in range(700_000))
    return hostile.text("0" * 16) + hostile.text("") + struct.pack("<I", 700_000) + b"".join(one)


def xids():
    labels = 2_000_000
    return hostile.text(RUN) + struct.pack("<I", 1) + hostile.text("job") + struct.pack("<I", labels) + bytes(8 * labels + 20)


def remote_file(job, kind):
    """The file or directory of the remote write target, which an agent before has made."""
    (path,) = job.segments.glob(f"agent.remote.*.{kind}")
    return path


def active_series(job):
    block = hostile.snappy(struct.pack("<I", 1) + bytes(60), 1, 300 * MIB)
    hostile.journal(remote_file(job, "series"), b"PRSMRWS\n", (1, block))


def queue(job):
    """Eight requests of 50 MiB, each with 128 million series of no bytes."""
    body = hostile.snappy(b"\x0a\x00" * (20 * MIB), 2, 250 * MIB)
    for number in range(8):
        name = f"{900 + number:012}.{int(time.time() * 1000)}.1000000.queue"
        hostile.journal(remote_file(job, "queue") / name, b"PRSMRWQ\n", (1, body))


# The pipe.


def write_lines(lines):
    def write(job, agent):
        descriptor = os.open(job.directory / "fifo", os.O_WRONLY)
        with os.fdopen(descriptor, "wb") as pipe:
            for line in lines():
                pipe.write(line)

        def read():
            counts = [agent.metrics().one("persia_agent_fifo_lines_total", result=result) or 0 for result in ("good", "bad")]
            return sum(counts) == sum(1 for _ in lines())

        wait_until(read, "all lines to be read")

    return write


def one_name_many_values():
    yield b'{"' + b"n" * 100_000 + b'": [' + b"1," * 400_000 + b"1]}\n"


def long_names():
    for number in range(200):
        yield b'{"%d' % number + b"n" * 1_000_000 + b'": 1}\n'


def one_long_label():
    for number in range(300):
        yield b'{"metrics": {"a": 1}, "labels": {"%d": "' % number + b"v" * 900_000 + b'"}}\n'


# Clients.

API = ("query_range?name=hostile_gauge&start=0&end=1&step=1", "query_range?name=hostile_gauge&bands=true", "metadata", "series?name=hostile_gauge")
API += ("search?q=h", "status", "events")


def many_series(count):
    return lambda job: lock(ended(job, 1, *hostile.gauges(count, [("b", "x" * 100)])))


def slow_scrapes(job, agent):
    """Scrapes, of a collection each, by clients that hardly read."""
    host, port = agent.address.split(":")
    with contextlib.ExitStack() as stack:
        for _ in range(8):  # there are six workers
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect((host, int(port)))
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: " + agent.address.encode() + b"\r\n\r\n")
            assert client.recv(12) in (b"HTTP/1.1 200", b"HTTP/1.1 503")  # 500: there was no memory for it
            time.sleep(0.25)  # the time of a collection


def all_at_once(job, agent):
    def ask(path):
        with contextlib.suppress(OSError):
            fetch(f"{agent.url}/{path}", timeout=30)

    for path in (*(f"api/v1/{path}" for path in API), "report.html"):
        threads = [threading.Thread(target=ask, args=(path,)) for _ in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


# Servers.


class Server(threading.Thread):
    """Answers each request by `pieces`, without an end, as fast as the agent reads."""

    def __init__(self, pieces):
        super().__init__(daemon=True)
        self.pieces = pieces
        self.answers, self.sent = 0, 0  # that have ended, and bytes of all
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._answer, args=(self.listener.accept()[0],), daemon=True).start()

    def _answer(self, client):
        with client, client.makefile("rb") as request, contextlib.suppress(OSError):
            head = b"".join(itertools.takewhile(lambda line: line != b"\r\n", request))
            length = re.search(rb"(?i)content-length: (\d+)", head)
            request.read(int(length[1]) if length else 0)
            for piece in self.pieces():
                client.sendall(piece)
                self.sent += len(piece)
        self.answers += 1


def many_bytes(job, agent):
    """Waits until the agent has read much, or has left several answers."""
    (server,) = job.servers.values()
    wait_until(lambda: server.answers > 2 or server.sent > 200 * MIB, "the answers to be read")


def endless(start, make):
    def pieces():
        yield start
        number = 0
        while True:
            yield b"".join(make(number + i) for i in range(2000))
            number += 2000

    return pieces


def header(number):
    return b"X-%d: " % number + b"h" * 4000 + b"\r\n"


def offence(number):
    return b'* collected metric "x%d" { } is not a COUNTER ' % number + b"z" * 300 + b"\n"


OK = b"HTTP/1.1 200 X\r\n"
ANSWERS = {
    "a body without end": endless(OK + b"\r\n", offence),
    "a refusal without end": endless(b"HTTP/1.1 400 X\r\n\r\n", offence),
    "an error without end": endless(b"HTTP/1.1 500 X\r\n\r\n", offence),
    "headers without end": endless(OK, header),
    "one header without end": endless(OK + b"X: ", lambda number: b"h" * 4000),
    "trailers without end": endless(OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", header),
    "413": lambda: [b"HTTP/1.1 413 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"],
    "interim answers without end": endless(b"", lambda number: b"HTTP/1.1 103 X\r\n" + header(number) + b"\r\n"),
}

REMOTE = "--remote-write=http://127.0.0.1:1/w"
FIFO = "--fifo={job.directory}/fifo"
NO_ROOM = "does not fit into the memory for what others have written, {limit} bytes; remove it, or raise max_foreign_bytes"
TOO_LARGE = "it is larger than any state of an agent; it is kept as"

ROWS = {
    "segments: many that ended": Row(meanwhile=many_ended),
    "segments: one that ended": Row(meanwhile=one_huge(), says="0000000000000001.seg is not read: it " + NO_ROOM),
    "segments: one that ended, malformed at its end": Row(meanwhile=one_huge(bytes(8)), says="1.seg is not read: it " + NO_ROOM),
    "segments: many chunks": Row(meanwhile=many_chunks, says="1.seg is not read: it " + NO_ROOM),
    "segments: many events": Row(meanwhile=many_events),
    "segments: a living one of the group": Row(
        living=share_with_group, meanwhile=of_the_group, flags=(f"--metrics-dir-group={GROUP}",), says="1.seg is not read: it " + NO_ROOM
    ),
    "state: zeros": Row(before=zeros("agent.state"), says="agent.state " + NO_ROOM),
    "state: ordinals": Row(before=ordinals, says="agent.state " + NO_ROOM),
    "state: one large record": Row(before=state_of(lambda: (200, bytes(100 * MIB))), says="agent.state " + NO_ROOM),
    "state: series": Row(before=lambda job: state_of(lambda: (3, hostile.group(RUN, job.name, 400_000)))(job), says="agent.state " + NO_ROOM),
    "state: positions of events": Row(before=journal_of("agent.events", b"PRSMEVP\n", positions), says="agent.events cannot be used: " + TOO_LARGE),
    "state: groups": Row(before=journal_of("agent.groups", b"PRSMGRP\n", groups), says="agent.groups cannot be used: " + TOO_LARGE),
    "state: GPU errors": Row(before=journal_of("agent.gpu", b"PRSMGPU\n", xids), says="agent.gpu cannot be used: " + TOO_LARGE),
    "state: active series": Row(before=active_series, flags=(REMOTE,), says=".series " + NO_ROOM),
    "state: the disk queue": Row(before=queue, flags=("--remote-write=http://{413}/w",), limit=256 * MIB),
    "pipe: many values of a long name": Row(meanwhile=write_lines(one_name_many_values), flags=(FIFO,)),
    "pipe: long names": Row(meanwhile=write_lines(long_names), flags=(FIFO,)),
    "pipe: long labels": Row(meanwhile=write_lines(one_long_label), flags=(FIFO,)),
    "queries: slow scrapes": Row(living=many_series(50_000), meanwhile=slow_scrapes, limit=128 * MIB),
    "queries: all at once": Row(living=many_series(10_000), meanwhile=all_at_once),
    **{f"answers: {what}": Row(flags=(f"--gateway={{{what}}}", f"--remote-write=http://{{{what}}}/w"), meanwhile=many_bytes) for what in ANSWERS},
}
MARKS = {
    "segments: a living one of the group": pytest.mark.needs("other-users"),
    # They have limits that other tests guard.
    "queries: all at once": pytest.mark.night,
    **{f"answers: {what}": pytest.mark.night for what in ANSWERS if what != "trailers without end"},
}


def start(job, row, servers, program=AGENT):
    def address(name):
        server = servers.setdefault(name[1], Server(ANSWERS[name[1]]))
        return server.address

    flags = [re.sub(r"{(.*)}", address, flag.format(job=job) if "job." in flag else flag) for flag in row.flags]
    usual = (f"--max-foreign-bytes={row.limit}", f"--run-id={RUN}", *(() if any("--gateway" in flag for flag in flags) else ("--gateway=off",)))
    agent = job.agent(*usual, *flags, program=program)
    wait_until(agent.metrics, "the agent's pages")
    agent.await_collections(3)
    return agent


@pytest.mark.parametrize("what", [pytest.param(what, marks=MARKS.get(what, ())) for what in ROWS])
def test_hostile_bytes_take_no_more_memory_than_the_setting_says(job, what):
    row = ROWS[what]
    worker = job.worker()
    worker.tell("count my_app batches 7")
    kept = row.living(job) if row.living else None
    job.servers = servers = {}
    agent = start(job, row, servers)
    for accept in ("text/plain", "application/openmetrics-text"):  # what a scrape takes
        scrape = urllib.request.Request(agent.url + "/metrics", headers={"Accept": accept, "Accept-Encoding": "gzip"})
        urllib.request.urlopen(scrape, timeout=30).close()
    most = data_bytes(agent) + row.limit
    if row.before:
        agent.stop()
        row.before(job)
        agent = start(job, row, servers, limited(job.directory, most))
    resource.prlimit(agent.pid, resource.RLIMIT_DATA, (most, most))
    held = row.meanwhile(job, agent) if row.meanwhile else None
    agent.await_collections(4)
    worker.tell("count my_app batches 1")
    wait_until(lambda: agent.metrics().one("my_app_batches") == 8, "the worker's count")
    assert agent.running() and row.says.format(limit=row.limit) in agent.output(), agent.output()
    for descriptor in filter(None, (kept, held if isinstance(held, int) else None)):
        os.close(descriptor)


def test_an_honest_job_loses_nothing_by_it(job):
    """Processes that ended at once, of as many series as are exposed, and 600 of the same few, by the defaults; and again from the state."""
    large, small = hostile.counters(45_000), hostile.counters(10)
    for number in range(600):
        ended(job, number, *small, replica=4, cells=hostile.ONES)
    for replica in range(4):
        ended(job, 600 + replica, *large, replica=replica, cells=hostile.ONES, events=[hostile.event(0, replica)])

    def counts():
        lines = [line for line in fetch(agent.url + "/metrics", timeout=60)[1].splitlines() if line.startswith("honest_counter{")]
        return sum('rep_4"' not in line and line.endswith(" 1") for line in lines), sum('rep_4"' in line and line.endswith(" 600") for line in lines)

    for events in (4, 0):
        agent = job.agent("--gateway=off", f"--run-id={RUN}")
        wait_until(lambda: counts() == (180_000, 10), "all counts", 120)
        wait_until(lambda: not list(job.segments.glob("*.seg")), "the segments to be in the state")
        assert len(json.loads(fetch(agent.url + "/api/v1/events?type=t")[1])["events"]) == events
        agent.stop()
        assert "is not read" not in agent.output()
    assert (job.segments / "agent.state").stat().st_size > 10 * MIB
