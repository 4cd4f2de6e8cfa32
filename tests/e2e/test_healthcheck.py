"""The image's health check, on agents and on other servers."""

import functools
import http.server
import socketserver
import subprocess
import threading

import pytest
from servers import ROOT, free_port, wait_until
from test_web_config import Locked
from tls import bcrypt


def is_healthy(address):
    return subprocess.run([ROOT / "agent/healthcheck.sh", address], timeout=60, capture_output=True).returncode == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_an_agent_is_healthy_by_ipv4_and_ipv6(job, host):
    address = f"{host}:{free_port()}"
    agent = job.agent(f"--listen={address}")
    wait_until(lambda: is_healthy(address), "a healthy agent")
    agent.stop()
    assert not is_healthy(address)


def test_pages_behind_a_password_count_as_healthy(job, tmp_path):
    locked = Locked(job, tmp_path / "web.yaml", alice=bcrypt("secret"))
    assert is_healthy(locked.agent.address)


def test_another_server_at_the_address_is_no_healthy_agent(tmp_path):
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with socketserver.TCPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            assert not is_healthy(f"127.0.0.1:{server.server_address[1]}")
        finally:
            server.shutdown()
