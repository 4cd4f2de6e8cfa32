"""A receiver of remote write 1.0 on a real socket, as strict as the specification, with the faults that a test requests.

A violation of the protocol is answered with 400, and kept in `errors`. A sample that a series has already, with the same time and
value, is a replay. A sample before the series' last one is out of order: the whole request is refused, as Prometheus does.

Metadata without samples are kept in `metadata`.

Faults are set in advance, one per request; `trouble` is that of every other request until it changes:

- `status(500)`, `status(429, retry_after=1)`, `status(307, location=URL)`: another answer than 204. `retry_after` may be a function, which is called then.
- `SlowAnswer(seconds)`: accepts the request, and answers after that time.
- `SlowRead(seconds)`: reads the body evenly over that time, and accepts it. Needs a body larger than all buffers.
- `SILENCE`: sends no answer. `RESET`: resets the connection.
- `HALF_CLOSE`: reads the request, does not accept it, and closes the sending side without an answer.
- `CUT_STATUS`, `CUT_ANSWER`: accepts the request, and closes the sending side within the status line, or the body.
- `IDLE_HALF_CLOSE`: accepts and answers the request, then closes the sending side.

After a half-close the connection stays until the agent has closed its side.
"""

import contextlib
import dataclasses
import http.server
import socket
import struct
import threading
import time
from collections import defaultdict, deque

from remote_write_request import BadRequest, decode, require
from servers import wait_until

STALE = 0x7FF0000000000002
SILENCE, RESET = "silence", "reset"
HALF_CLOSE, CUT_STATUS, CUT_ANSWER, IDLE_HALF_CLOSE = "half-close", "cut status", "cut answer", "idle half-close"
CUT = {CUT_STATUS: b"HTTP/1.1 20", CUT_ANSWER: b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf"}


def status(code, retry_after=None, location=None):
    return code, retry_after, location


def _value(bits):
    return None if bits == STALE else struct.unpack("<d", struct.pack("<Q", bits))[0]


@dataclasses.dataclass(frozen=True)
class SlowRead:
    seconds: float


@dataclasses.dataclass(frozen=True)
class SlowAnswer:
    seconds: float


@dataclasses.dataclass
class Visit:
    """A request as received. Times are of the monotonic clock; None: it did not happen."""

    fault: object
    arrived: float
    arrived_at: float  # of the wall clock
    size: int
    whole: bool = None  # whether the whole body arrived
    answering: float = None  # just before the answer
    asked: str = None  # by Retry-After
    late: int = None  # bytes received after a half-close


class Receiver:
    """Listens from `start` to `stop`, repeatedly, and keeps its data."""

    PATH = "/api/v1/write"

    def __init__(self, port, small_buffers=False):
        """With small buffers a connection buffers little of an unread body, on either side."""
        self.port = port
        self.url = f"http://127.0.0.1:{port}{self.PATH}"
        self.samples = defaultdict(list)  # by labels: (timestamp, bits), in the order of arrival, without replays
        self.errors, self.replays, self.connections = [], 0, 0
        self.visits = []
        self.headers = {}  # of the last request
        self.metadata = {}  # (type, help) by family
        self.refuses_metadata = False
        self.faults = deque()
        self.trouble = None
        self._small_buffers = small_buffers
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

            def server_bind(self):
                # Connections inherit it. Later would be after the window was announced to the peer.
                if receiver._small_buffers:
                    self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
                    # As in a real network: with loopback's segments of 64 KiB the kernel would accept megabytes from the agent without waiting.
                    self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1400)
                super().server_bind()

            def process_request(self, *arguments):
                receiver.connections += 1
                super().process_request(*arguments)

            def handle_error(self, *_):
                pass  # the client has closed the connection

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

    @property
    def met(self):
        """The faults that happened."""
        return [visit.fault for visit in list(self.visits) if visit.fault is not None]

    def all(self):
        """All samples by labels, a frozenset: (timestamp in ms, value; None for a stale marker)."""
        return self._with({})

    def catch_up(self):
        """Waits until it has a sample of now: a busy machine may leave a backlog, which the agent does not send at its end. The test
        fails only if the backlog does not shrink."""
        now = time.time() * 1000
        while (newest := self._newest()) < now:
            wait_until(lambda newest=newest: self._newest() > newest, "newer samples", 60)

    def _newest(self):
        with self._lock:
            return max((samples[-1][0] for samples in self.samples.values() if samples), default=0)

    def series(self, name, **labels):
        """The samples of the only series with this name and labels, in the form of `all`."""
        found = list(self._with({"__name__": name, **labels}).values())
        assert len(found) <= 1, f"{name}{labels}: {len(found)} series"
        return found[0] if found else []

    def _with(self, wanted):
        with self._lock:
            found = {frozenset(have): list(samples) for have, samples in self.samples.items() if wanted.items() <= set(have) and samples}
        return {labels: [(at, _value(bits)) for at, bits in samples] for labels, samples in found.items()}

    def last(self, name, **labels):
        """The newest value, or None if there is none or the series has ended."""
        samples = self.series(name, **labels)
        return samples[-1][1] if samples else None

    def _serve(self, handler):
        visit = Visit(None, time.monotonic(), time.time(), int(handler.headers["Content-Length"]))
        with self._lock:
            self.headers = dict(handler.headers)
            visit.fault = fault = self.faults.popleft() if self.faults else self.trouble
            self.visits.append(visit)
        body = self._read(handler, visit)
        visit.whole = len(body) == visit.size
        if not visit.whole:
            handler.close_connection = True  # the agent has given up
        elif fault == SILENCE:
            self._stopping.wait(30)
            handler.close_connection = True
        elif fault == RESET:
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.connection.close()
            handler.close_connection = True
        elif fault == HALF_CLOSE:
            self._half_close(handler, visit)
        elif fault in (CUT_STATUS, CUT_ANSWER):
            self._take(handler, body)
            handler.wfile.write(CUT[fault])
            self._half_close(handler, visit)
        elif isinstance(fault, tuple):
            code, visit.asked = fault[0], fault[1]() if callable(fault[1]) else fault[1]
            self._answer(handler, visit, code, "a fault of the test", fault[2])
        else:
            answer = self._take(handler, body)
            if isinstance(fault, SlowAnswer):
                self._stopping.wait(fault.seconds)
            self._answer(handler, visit, *answer)
            if fault == IDLE_HALF_CLOSE:
                self._half_close(handler, visit)

    def _read(self, handler, visit):
        if not isinstance(visit.fault, SlowRead):
            return handler.rfile.read(visit.size)
        body = bytearray()
        begun = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while len(body) < visit.size:
                piece = handler.rfile.read(min(1 << 16, visit.size - len(body)))
                if not piece:
                    break
                body += piece
                self._stopping.wait(max(0, begun + visit.fault.seconds * len(body) / visit.size - time.monotonic()))
        return bytes(body)

    @staticmethod
    def _half_close(handler, visit):
        handler.close_connection = True
        handler.connection.shutdown(socket.SHUT_WR)
        handler.connection.settimeout(60)
        visit.late = len(handler.rfile.read())

    def _take(self, handler, body):
        try:
            require(handler.path == self.PATH, f"path {handler.path}")
            with self._lock:
                series, metadata = decode(handler.headers, body)
                if metadata and self.refuses_metadata:
                    return 400, "no metadata here"
                self.metadata.update(metadata)
                return self._store(series)
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
                require(sample[0] > last[0], f"out of order: {labels} {sample} after {last}")
                new.append((labels, sample))
                last = sample
        for labels, sample in new:
            self.samples[labels].append(sample)
        return 204, ""

    @staticmethod
    def _answer(handler, visit, code, text, location=None):
        body = text.encode()
        visit.answering = time.monotonic()
        handler.send_response(code)
        if visit.asked is not None:
            handler.send_header("Retry-After", str(visit.asked))
        if location is not None:
            handler.send_header("Location", location)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
