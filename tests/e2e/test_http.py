"""The agent's pages under clients that stall, or send what nobody should: others are served all the same."""

import socket
import time

import pytest
from servers import fetch, wait_until


def connect(agent):
    host, port = agent.address.split(":")
    return socket.create_connection((host, int(port)), timeout=10)


def ask(agent, request):
    """All that comes back until the agent closes."""
    with connect(agent) as connection:
        connection.sendall(request)
        answer = b""
        try:
            while part := connection.recv(65536):
                answer += part
        except ConnectionError:
            pass  # closed before it had read all that was sent
        return answer


@pytest.fixture
def agent(job):
    agent = job.agent()
    wait_until(agent.metrics, "the agent's pages")
    return agent


STALLS = {
    "nothing": b"",
    "half a request line": b"GET /metr",
    "half a header": b"GET /metrics HTTP/1.1\r\nHost: a\r\nX-Slow: ",
    "half a body": b"POST /-/reload HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nhalf",
}


@pytest.mark.parametrize("stall", STALLS)
def test_scrapes_go_on_while_fifty_clients_stall(agent, gateway, stall):
    stalled = [connect(agent) for _ in range(50)]
    try:
        for connection in stalled:
            connection.sendall(STALLS[stall])
        for _ in range(3):
            begin = time.monotonic()
            assert fetch(agent.url + "/metrics", timeout=5)[0] == 200
            assert time.monotonic() - begin < 1
        pushed = agent.metrics().one("persia_agent_pushes_total", result="success")
        wait_until(lambda: agent.metrics().one("persia_agent_pushes_total", result="success") > pushed, "another push", 5)
    finally:
        for connection in stalled:
            connection.close()


REQUESTS = {
    "100 kB of header": (b"GET /metrics HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 100_000 + b"\r\n\r\n", (b"HTTP/1.1 4", b"")),
    "chunked body": (b"POST /metrics HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", (b"HTTP/1.1 405",)),
    "pipelining": (b"GET /-/ready HTTP/1.1\r\nHost: a\r\n\r\n" * 2, (b"HTTP/1.1 200",)),
    "NUL bytes": (b"GET /metrics\0x HTTP/1.1\r\nHost: a\r\n\r\n", (b"HTTP/1.1 400", b"")),
    "HTTP/0.9": (b"GET /metrics\r\n\r\n", (b"HTTP/1.1 400", b"")),
    "wrong Host": (b"GET /-/ready HTTP/1.1\r\nHost: evil.example\r\n\r\n", (b"HTTP/1.1 200", b"HTTP/1.1 4")),
    "absolute URI": (b"GET http://a/-/ready HTTP/1.1\r\nHost: a\r\n\r\n", (b"HTTP/1.1 ", b"")),
    "HEAD": (b"HEAD /-/ready HTTP/1.1\r\nHost: a\r\n\r\n", (b"HTTP/1.1 200",)),
    "unknown method": (b"BREW /metrics HTTP/1.1\r\nHost: a\r\n\r\n", (b"HTTP/1.1 4",)),
    "huge query": (b"GET /-/ready?" + b"q" * 15_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", (b"HTTP/1.1 200",)),
    "Expect": (b"POST /metrics HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc", (b"HTTP/1.1 100", b"HTTP/1.1 405")),
}


@pytest.mark.parametrize("request_name", REQUESTS)
def test_odd_requests_are_answered_or_refused(agent, request_name):
    request, beginnings = REQUESTS[request_name]
    answer = ask(agent, request)
    allowed = [beginning for beginning in beginnings if beginning]
    assert (not answer and b"" in beginnings) or answer.startswith(tuple(allowed)), answer[:300]
    assert fetch(agent.url + "/-/ready") == (200, "Ready.\n")
