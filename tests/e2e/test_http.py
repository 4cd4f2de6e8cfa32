"""Clients that stall or send malformed requests do not affect the agent's other clients."""

import contextlib
import gzip
import itertools
import socket
import time
import urllib.request

import pytest
from servers import fetch, wait_until


def connect(agent):
    host, port = agent.address.split(":")
    return socket.create_connection((host, int(port)), timeout=60)


def ask(agent, request):
    """All bytes until the agent closes the connection."""
    with connect(agent) as connection:
        answer = b""
        try:
            connection.sendall(request)
            while part := connection.recv(65536):
                answer += part
        except ConnectionError:
            pass  # the agent closed the connection before it had read everything
        return answer


@pytest.fixture
def agent(job):
    agent = job.agent()
    wait_until(agent.metrics, "the agent's pages")
    return agent


def scrape(agent, **headers):
    """The headers and the body of a scrape."""
    with urllib.request.urlopen(urllib.request.Request(agent.url + "/metrics", headers=headers), timeout=10) as answer:
        return answer.headers, answer.read()


@pytest.mark.parametrize("accept", ["text/plain", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"])
def test_a_scrape_is_compressed_for_a_client_that_asks(agent, accept):
    names = b"persia_agent_build_info", b"persia_agent_collections_total"
    wait_until(lambda: agent.metrics().one("persia_filesystem_size_bytes", use="shm"), "the machine's metrics, which come later")
    plain, body = scrape(agent, Accept=accept)
    assert plain["Content-Encoding"] is None and plain["Vary"] == "Accept, Accept-Encoding"
    for _ in range(3):
        headers, compressed = scrape(agent, **{"Accept": accept, "Accept-Encoding": "deflate, gzip;q=0.5"})
        assert headers["Content-Encoding"] == "gzip" and headers["Content-Type"] == plain["Content-Type"]
        assert int(headers["Content-Length"]) == len(compressed) < len(body) / 2
        unpacked = gzip.decompress(compressed)
        assert all((name in unpacked) == (name in body) for name in names) and abs(len(unpacked) - len(body)) < len(body) / 10


STALLS = {
    "nothing": b"",
    "half a request line": b"GET /metr",
    "half a header": b"GET /metrics HTTP/1.1\r\nHost: a\r\nX-Slow: ",
    "half a body": b"POST /-/reload HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nhalf",
}


PAGES = ["/", "/assets/dygraph.min.js", "/report.html", "/api/v1/status", "/api/v1/metadata", "/api/v1/series?name=my_app_misses&limit=1"]


def get(agent, path, *headers):
    """The headers and the body of a page."""
    lines = [f"GET {path} HTTP/1.1", f"Host: {agent.address}", "Connection: close", *headers]
    head, _, body = ask(agent, ("\r\n".join(lines) + "\r\n\r\n").encode()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    return dict(line.split(": ", 1) for line in head.decode().splitlines()[1:]), body


def test_a_page_is_compressed_for_a_client_that_asks(job):
    agent, worker = job.agent(), job.worker()
    for number in range(50):
        worker.tell(f"count_feat my_app misses feat{number} 2")
    wait_until(lambda: agent.metrics().one("my_app_misses", feat="feat49") == 2, "the series")
    for path in [*PAGES, "/api/v1/series?name=my_app_misses"]:
        headers, plain = get(agent, path)
        assert "Content-Encoding" not in headers and headers["Vary"] == "Accept-Encoding"
        headers, body = get(agent, path, "Accept-Encoding: deflate, br", "Accept-Encoding: gzip")  # two headers are one list
        assert headers["Content-Length"] == str(len(body))
        if len(plain) < 2000:
            assert "Content-Encoding" not in headers and len(body) < 2500
            continue
        assert headers["Content-Encoding"] == "gzip" and len(body) < 0.6 * len(plain), path
        unpacked = gzip.decompress(body)
        if "/assets/" in path or path == "/":
            assert unpacked == plain
        else:
            assert unpacked[:20] == plain[:20] and abs(len(unpacked) - len(plain)) < 0.1 * len(plain), "of another moment"
    assert len(get(agent, "/assets/dygraph.min.js")[1]) > 100_000


def test_several_headers_are_one_list(agent):
    headers, _ = get(agent, "/metrics", "Accept: application/x-nothing", "Accept: application/openmetrics-text;version=1.0.0")
    assert headers["Content-Type"].startswith("application/openmetrics-text")


@contextlib.contextmanager
def stalled(agent, count):
    """Clients that stall, a quarter of them in each way."""
    with contextlib.ExitStack() as clients:
        for stall in itertools.islice(itertools.cycle(STALLS.values()), count):
            with contextlib.suppress(ConnectionError):  # cut off already
                clients.enter_context(connect(agent)).sendall(stall)
        yield


def test_scrapes_and_pushes_go_on_once_the_time_of_stalled_clients_is_up(agent, gateway):
    """Each holds one of six threads for five seconds."""
    with stalled(agent, 8):
        answer = ask(agent, b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 ")
        pushed = gateway.metrics().one("persia_agent_pushes_total", result="success")
        wait_until(lambda: gateway.metrics().one("persia_agent_pushes_total", result="success") > pushed, "another push")


HOST = b" HTTP/1.1\r\nHost: a\r\n"

# Requests and the status of their answers. tests/unit/net/http_server_test.cc has more.
REQUESTS = {
    "100 kB of header": (b"GET /metrics" + HOST + b"X: " + b"x" * 100_000 + b"\r\n\r\n", 400),
    "a chunk's endless head": (b"POST /metrics" + HOST + b"Transfer-Encoding: chunked\r\n\r\n3;" + b"x" * 200_000, 411),
    "a compressed body": (b"POST /metrics" + HOST + b"Transfer-Encoding: gzip\r\n\r\n", 400),
    "a body of 200 kB": (b"POST /metrics" + HOST + b"Content-Length: 200000\r\n\r\n" + b"x" * 200_000, 413),
    "a body of 8 EB": (b"POST /metrics" + HOST + b"Content-Length: 9223372036854775807\r\n\r\nx", 413),
    "a negative length": (b"POST /metrics" + HOST + b"Content-Length: -1\r\n\r\n", 411),
    "pipelining": ((b"GET /-/ready" + HOST + b"\r\n") * 2, 200),
    "NUL bytes": (b"GET /metrics\0x" + HOST + b"\r\n", 400),
    "HTTP/0.9": (b"GET /metrics\r\n\r\n", 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "HTTP/3": (b"GET / HTTP/3.0\r\n\r\n", 505),
    "an absolute URI with another port": (b"GET http://a:1/-/ready" + HOST + b"\r\n", 400),
    "no path": (b"OPTIONS *" + HOST + b"\r\n", 400),
    "an unknown method": (b"BREW /metrics" + HOST + b"\r\n", 400),
    "a long query": (b"GET /-/ready?" + b"q" * 15_000 + HOST + b"\r\n", 200),
    "Expect": (b"POST /metrics" + HOST + b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc", 405),
}


def test_odd_requests_are_answered_or_refused(agent):
    """None by the timeout, which gives 408."""
    for name, (request, status) in REQUESTS.items():
        answer = ask(agent, request)
        assert answer[:13].decode() == f"HTTP/1.1 {status} ", (name, answer[:300])
        assert fetch(agent.url + "/-/ready") == (200, "Ready.\n"), name


def test_a_header_that_trickles_is_given_up(agent):
    trickler = connect(agent)
    trickler.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
    trickler.settimeout(0.5)
    begin = time.monotonic()
    closed = False
    while not closed:
        assert time.monotonic() - begin < 30
        try:
            trickler.sendall(b"x")
            closed = trickler.recv(65536) == b""
        except TimeoutError:
            pass
        except ConnectionError:
            closed = True
    trickler.close()
