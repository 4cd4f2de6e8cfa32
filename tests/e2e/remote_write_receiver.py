"""A database that takes remote write 1.0, on a real socket, as strict as the specification and as unkind as a test wants it.

What breaks the protocol is answered with 400, and kept in `errors`. A sample that a series has already, with the same time and
value, is a replay; one before its last is out of order, and the whole request is refused, as Prometheus does.

Faults are given in advance, one a request: `status(500)`, `status(429, retry_after=1)`, `SILENCE` (no answer), `HALF_CLOSE` (the end
of the answer's direction before an answer), `RESET`, `SLOW_READ` (the body is read a few bytes at a time).
"""

import http.server
import importlib
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict, deque

import snappy
from servers import ROOT

STALE = 0x7FF0000000000002
SILENCE, HALF_CLOSE, RESET, SLOW_READ = "silence", "half-close", "reset", "slow read"


def status(code, retry_after=None):
    return code, retry_after


def _messages():
    """The classes that protoc makes of the protocol's messages."""
    with tempfile.TemporaryDirectory() as directory:
        source = ROOT / "tests/unit/remote"
        subprocess.run(["protoc", f"--proto_path={source}", f"--python_out={directory}", "remote_write.proto"], check=True, timeout=60)
        sys.path.insert(0, directory)
        try:
            return importlib.import_module("remote_write_pb2")
        finally:
            sys.path.remove(directory)


MESSAGES = _messages()


class BadRequest(Exception):
    pass


def _require(holds, why):
    if not holds:
        raise BadRequest(why)


def decode(headers, body):
    """The series of a request: (labels, [(timestamp, bits of the value)]) each."""
    expected = {
        "Content-Type": "application/x-protobuf",
        "Content-Encoding": "snappy",
        "X-Prometheus-Remote-Write-Version": "0.1.0",
    }
    for name, value in expected.items():
        _require(headers.get(name) == value, f"header {name}: {headers.get(name)!r}")
    _require(headers.get("User-Agent", "").startswith("persia-metrics-agent/"), f"User-Agent {headers.get('User-Agent')!r}")
    try:
        request = MESSAGES.WriteRequest.FromString(snappy.uncompress(body))
    except Exception as error:
        raise BadRequest(f"not a request: {error}") from error
    found = []
    for series in request.timeseries:
        labels = tuple((label.name, label.value) for label in series.labels)
        names = [name for name, _ in labels]
        _require(names == sorted(set(names)), f"labels are not sorted, or one is twice: {labels}")
        _require(all(value for _, value in labels), f"an empty value: {labels}")
        _require("__name__" in names, f"no name: {labels}")
        _require(series.samples, f"no samples: {labels}")
        found.append((labels, [(sample.timestamp, struct.unpack("<Q", struct.pack("<d", sample.value))[0]) for sample in series.samples]))
    _require(len({labels for labels, _ in found}) == len(found), "a series is twice in one request")
    return found


class Receiver:
    """Listens from `start` to `stop`, as often as wanted, and keeps what it got over that."""

    def __init__(self, port):
        self.port = port
        self.url = f"http://127.0.0.1:{port}/api/v1/write"
        self.samples = defaultdict(list)  # by labels: (timestamp, bits), in the order in which they came, replays left out
        self.errors, self.requests, self.replays = [], 0, 0
        self.faults = deque()
        self.met = []  # the faults that were met
        self._lock = threading.Lock()
        self._server = None
        self._stopping = threading.Event()

    def start(self):
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                receiver._serve(self)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 32

            def handle_error(self, *_):
                pass  # a client that has hung up

        self._stopping.clear()
        self._server = Server(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def stop(self):
        if self._server is not None:
            self._stopping.set()
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def series(self, name, **labels):
        """The samples of the only series of this name that has these labels: (timestamp in ms, value; None for the end)."""
        with self._lock:
            found = [
                samples
                for have, samples in self.samples.items()
                if dict(have)["__name__"] == name and labels.items() <= dict(have).items()
            ]
            assert len(found) <= 1, f"{name}{labels}: {len(found)} series"
            bits = list(found[0]) if found else []
        return [(at, None if value == STALE else struct.unpack("<d", struct.pack("<Q", value))[0]) for at, value in bits]

    def last(self, name, **labels):
        """The newest value; None if there is none, or if the series has ended."""
        samples = self.series(name, **labels)
        return samples[-1][1] if samples else None

    def _serve(self, handler):
        fault = None
        with self._lock:
            self.requests += 1
            if self.faults:
                fault = self.faults.popleft()
                self.met.append(fault)
        size = int(handler.headers["Content-Length"])
        if fault == SLOW_READ:
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            body = b""
            while len(body) < size:
                body += handler.rfile.read(min(256, size - len(body)))
                time.sleep(0.005)
        else:
            body = handler.rfile.read(size)
        if fault == SILENCE:
            self._stopping.wait(30)
            handler.close_connection = True
        elif fault == HALF_CLOSE:
            handler.connection.shutdown(socket.SHUT_WR)
            handler.close_connection = True
        elif fault == RESET:
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.connection.close()
            handler.close_connection = True
        elif isinstance(fault, tuple):
            self._answer(handler, fault[0], "a fault of the test", fault[1])
        else:
            self._answer(handler, *self._take(handler.headers, body))

    def _take(self, headers, body):
        try:
            with self._lock:
                return self._store(decode(headers, body))
        except BadRequest as error:
            self.errors.append(str(error))
            return 400, str(error)

    def _store(self, request):
        new = []
        for labels, samples in request:
            last = self.samples[labels][-1] if self.samples[labels] else (0, None)
            for sample in samples:
                if sample == last:
                    self.replays += 1
                    continue
                _require(sample[0] > last[0], f"out of order: {labels} {sample} after {last}")
                new.append((labels, sample))
                last = sample
        for labels, sample in new:
            self.samples[labels].append(sample)
        return 204, ""

    @staticmethod
    def _answer(handler, code, text, retry_after=None):
        handler.send_response(code)
        if retry_after is not None:
            handler.send_header("Retry-After", str(retry_after))
        handler.send_header("Content-Length", str(len(text)) if code != 204 else "0")
        handler.end_headers()
        if code != 204:
            handler.wfile.write(text.encode())
