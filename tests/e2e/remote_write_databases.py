"""Real databases with remote write, access to their exact samples, and a proxy that drops answers."""

import contextlib
import itertools
import json
import math
import socket
import socketserver
import threading
import time
import urllib.parse

from servers import Server, fetch, find_program, free_port


class Database:
    """May be killed, and restarted on the same port and storage. Registers each process with `started`."""

    name = ready_path = None
    shows_ends = False  # whether `samples` has stale markers, as None
    digits = 17  # of a value that it keeps

    def __init__(self, started):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._started = started
        self.start()

    def start(self):
        self.process = Server(self.command(), self.directory / "log", f"127.0.0.1:{self.port}", self.ready_path)
        self._started(self.process)

    def kill(self):
        self.process.kill()

    def query(self, expression):
        """Values by labels without the name."""
        return {
            frozenset((name, value) for name, value in found["metric"].items() if name != "__name__"): float(found["value"][1])
            for found in self.ask(expression)
        }

    def ask(self, expression):
        body = self.get("/api/v1/query?query=" + urllib.parse.quote(expression))
        return json.loads(body)["data"]["result"]

    def get(self, path):
        code, body = fetch(self.url + path, timeout=60)
        assert code == 200, body
        return body


class PrometheusReceiver(Database):
    name, ready_path = "prometheus", "/-/ready"

    def __init__(self, tmp_path, started, config="global: {scrape_interval: 1h}\n"):
        self.directory = tmp_path / "prometheus"
        self.directory.mkdir()
        (self.directory / "prometheus.yml").write_text(config)
        super().__init__(started)

    def command(self):
        command = [find_program("prometheus"), f"--config.file={self.directory / 'prometheus.yml'}"]
        command += [f"--storage.tsdb.path={self.directory / 'tsdb'}", f"--web.listen-address=127.0.0.1:{self.port}"]
        return [*command, "--web.enable-remote-write-receiver", "--log.level=warn"]

    def samples(self, selector):
        """(timestamp in ms, value) by labels including the name."""
        return {
            frozenset(found["metric"].items()): [(round(at * 1000), float(value)) for at, value in found["values"]]
            for found in self.ask(selector + "[10m]")
        }


class VictoriaMetrics(Database):
    name, ready_path = "victoria", "/health"
    shows_ends = True
    digits = 12

    def __init__(self, tmp_path, started, name="victoria", flags=("-dedup.minScrapeInterval=1ms",)):
        self.name, self._flags = name, flags
        self.directory = tmp_path / name
        self.directory.mkdir()
        super().__init__(started)

    def command(self):
        command = [find_program("victoria-metrics"), f"-storageDataPath={self.directory / 'data'}"]
        # A query may take a quarter of the memory: 32 MB; newer versions reserve 20 MB for a function over 20,000 series.
        command += [f"-httpListenAddr=127.0.0.1:{self.port}", "-search.latencyOffset=0s", "-memory.allowedBytes=128MB"]
        return [*command, "-loggerLevel=WARN", *self._flags]

    def samples(self, selector):
        """(timestamp in ms, value; None for a stale marker) by labels including the name."""
        found = {}
        for line in self.get("/api/v1/export?match[]=" + urllib.parse.quote(selector)).splitlines():
            series = json.loads(line)
            values = [None if value is None else float(value) for value in series["values"]]
            found.setdefault(frozenset(series["metric"].items()), []).extend(zip(series["timestamps"], values))
        return found


def check_samples(database, selector, expected, times=None):
    """Raises ValueError unless the database has exactly those samples of `expected` whose time is in `times`, in order."""

    def wanted(samples):
        return [
            (at, value) for at, value in samples if (times is None or at in times) and (value is not None or database.shows_ends)
        ]

    want = {labels: kept for labels, samples in expected.items() if (kept := wanted(samples))}
    have = {labels: kept for labels, samples in database.samples(selector).items() if (kept := wanted(samples))}
    for labels in want.keys() | have.keys():
        one, other = have.get(labels, []), want.get(labels, [])
        if [at for at, _ in one] != [at for at, _ in other]:
            raise ValueError(f"{database.name}: times of {sorted(labels)}: {one}, not {other}")
        for (at, value), (_, should) in zip(one, other):
            if value != should and (None in (value, should) or not math.isclose(value, should, rel_tol=10 ** (1 - database.digits))):
                raise ValueError(f"{database.name}: {sorted(labels)} at {at}: {value!r}, not {should!r}")
    return True


def now_ms():
    return time.time_ns() // 1_000_000


class AnswerThief:
    """A TCP proxy that forwards all bytes, but closes the connection instead of some of the server's success answers.

    So the agent must send data again that the server has accepted. `stolen` counts them. A context manager.
    """

    def __init__(self, to_port, which):
        """`which`: indexes of the answers to drop, from 0."""
        thief = self
        self.stolen = 0
        self._answers = itertools.count()

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                agent = self.request
                with socket.create_connection(("127.0.0.1", to_port)) as server:
                    threading.Thread(target=_pass_on, args=(agent, server), daemon=True).start()
                    with contextlib.suppress(OSError):
                        while answer := server.recv(1 << 16):
                            # An answer without a body, to one request at a time, arrives in one piece.
                            if answer.startswith(b"HTTP/1.1 2") and next(thief._answers) in which:
                                thief.stolen += 1
                                break
                            agent.sendall(answer)
                    _shut_down(agent, server)

        class Proxy(socketserver.ThreadingTCPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # the server is down

        self._proxy = Proxy(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._proxy.server_address[1]}/api/v1/write"

    def __enter__(self):
        threading.Thread(target=self._proxy.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self._proxy.shutdown()
        self._proxy.server_close()


def _pass_on(one, other):
    with contextlib.suppress(OSError):
        while piece := one.recv(1 << 16):
            other.sendall(piece)
    _shut_down(one, other)


def _shut_down(*connections):
    for connection in connections:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
