"""The agent's pages by TLS."""

import base64
import contextlib
import http.client
import socket
import ssl
import subprocess

import pytest
from servers import wait_until
from test_http import REQUESTS, STALLS
from tls import Authority, bcrypt


class Secured:
    """An agent that serves its pages by TLS, with these settings of `tls_server_config`."""

    def __init__(self, job, authority, text="", **tls):
        certificate, key = authority.issue("agent", "IP:127.0.0.1")
        settings = {"cert_file": certificate, "key_file": key, **tls}
        lines = [f"  {name}: {value}\n" for name, value in settings.items()]
        file = authority.directory / "web.yml"
        file.write_text("tls_server_config:\n" + "".join(lines) + text)
        self.agent = job.agent(f"--web.config.file={file}")
        self.host, self.port = self.agent.address.split(":")
        self.authority = authority
        wait_until(lambda: "pages on https://" in self.agent.output() and self.connect().close() is None, "the agent's pages")

    def context(self, certificate=None):
        context = ssl.create_default_context(cafile=self.authority.file)
        if certificate:
            context.load_cert_chain(*certificate)
        return context

    def connect(self):
        """A TCP connection, before the handshake."""
        return socket.create_connection((self.host, int(self.port)), timeout=10)

    def get(self, path="/-/healthy", context=None, headers=()):
        """Status and body."""
        connection = http.client.HTTPSConnection(self.host, int(self.port), timeout=10, context=context or self.context())
        with contextlib.closing(connection):
            connection.request("GET", path, headers=dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def ask(self, request):
        """All bytes until the agent closes the connection."""
        with self.context().wrap_socket(self.connect(), server_hostname=self.host) as connection:
            answer = b""
            try:
                connection.sendall(request)
                while part := connection.recv(65536):
                    answer += part
            except OSError:
                pass  # the agent closed the connection before it had read everything
            return answer


def test_pages_are_served_by_current_tls_alone(job, authority):
    secured = Secured(job, authority)
    assert secured.get() == (200, "Healthy.\n")
    status, metrics = secured.get("/metrics")
    assert status == 200 and "persia_agent_build_info" in metrics
    status, page = secured.get("/")
    assert status == 200 and "<html" in page
    with pytest.raises(ssl.SSLCertVerificationError):
        secured.get(context=ssl.create_default_context())
    with secured.connect() as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            assert not connection.recv(1000).startswith(b"HTTP/")
    context = secured.context()
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION"):
        secured.get(context=context)
    assert secured.get()[0] == 200


def test_tls_1_3_can_be_required(job, authority):
    secured = Secured(job, authority, min_version="TLS13")
    context = secured.context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION"):
        secured.get(context=context)
    assert secured.get()[0] == 200


@pytest.mark.parametrize("kind", ["RequireAndVerifyClientCert", "VerifyClientCertIfGiven"])
def test_client_certificates_are_verified(job, authority, tmp_path, kind):
    secured = Secured(job, authority, client_auth_type=kind, client_ca_file=authority.file)
    assert secured.get(context=secured.context(authority.issue("client", "DNS:client")))[0] == 200
    (tmp_path / "other").mkdir()
    stranger = Authority(tmp_path / "other", "other CA").issue("stranger", "DNS:stranger")
    with pytest.raises(OSError):
        secured.get(context=secured.context(stranger))
    if kind == "RequireAndVerifyClientCert":
        with pytest.raises(OSError):
            secured.get()
    else:
        assert secured.get()[0] == 200


def test_a_prometheus_scrapes_by_tls_with_a_password(job, authority, prometheus):
    secured = Secured(job, authority, f"basic_auth_users:\n  prometheus: {bcrypt('secret')}\n")
    assert secured.get("/metrics")[0] == 401
    settings = (
        f"    scheme: https\n    tls_config: {{ca_file: {authority.file}}}\n"
        "    basic_auth: {username: prometheus, password: secret}\n"
    )
    server = prometheus(secured.agent.address, settings=settings)
    wait_until(lambda: server.query("persia_agent_build_info"), "the agent's metrics in Prometheus")
    assert server.query("up")[0]["value"][1] == "1"


def test_odd_requests_are_answered_as_by_plain_http(job, authority):
    secured = Secured(job, authority)
    for name, (request, status) in REQUESTS.items():
        answer = secured.ask(request)
        if answer == b"" and len(request) > 65536:
            continue  # the connection was reset before the client had sent the request
        assert answer[:13].decode() == ("" if status is None else f"HTTP/1.1 {status} "), (name, answer[:300])
    assert secured.get("/-/ready") == (200, "Ready.\n")


def stalls_in_handshake(secured):
    connection = secured.connect()
    connection.sendall(b"\x16\x03\x01\x02\x00\x01")
    return connection


def stalls_in_header(secured):
    connection = secured.context().wrap_socket(secured.connect(), server_hostname=secured.host)
    connection.sendall(STALLS["half a header"])
    return connection


@pytest.mark.parametrize("stall", [Secured.connect, stalls_in_handshake, stalls_in_header])
def test_a_scrape_goes_on_once_the_time_of_stalled_clients_is_up(job, authority, stall):
    secured = Secured(job, authority)
    with contextlib.ExitStack() as stalled:
        for _ in range(8):
            stalled.enter_context(stall(secured))
        assert secured.get("/metrics")[0] == 200


def test_a_certificate_without_its_key_is_an_error_that_names_it(job, authority):
    certificate, _ = authority.issue("agent", "IP:127.0.0.1")
    rsa = authority.directory / "rsa.key"
    subprocess.run(["openssl", "genrsa", "-out", rsa, "2048"], check=True, capture_output=True, timeout=60)
    file = authority.directory / "web.yml"
    for wrong in (rsa, authority.issue("other", "IP:127.0.0.1")[1]):
        file.write_text(f"tls_server_config:\n  cert_file: {certificate}\n  key_file: {wrong}\n")
        agent = job.agent(f"--web.config.file={file}", "--strict")
        assert agent.wait() == 2
        assert f'tls_server_config: key_file "{wrong}": is not the key of the first certificate in cert_file' in agent.output()


def test_one_file_may_have_all_in_any_order(job, authority):
    """And more: what counts is the key of key_file, and each certificate is sent once."""
    certificate, key = authority.issue("server", "IP:127.0.0.1")
    _, other = authority.issue("other", "IP:127.0.0.1")
    chain = authority.directory / "all.pem"
    chain.write_text(other.read_text() + key.read_text() + certificate.read_text() + authority.file.read_text().rstrip("\n"))
    secured = Secured(job, authority, cert_file=chain, key_file=key)
    assert secured.get()[0] == 200
    shown = subprocess.run(
        ["openssl", "s_client", "-connect", secured.agent.address, "-showcerts"], input="", capture_output=True, text=True, timeout=30
    )
    assert shown.stdout.count("-----BEGIN CERTIFICATE-----") == 2


def test_a_user_loses_access_although_the_certificate_is_missing(job, authority):
    secured = Secured(job, authority, f"basic_auth_users:\n  alice: {bcrypt('secret')}\n")

    def status(user):
        return secured.get(headers={"Authorization": "Basic " + base64.b64encode(f"{user}:secret".encode()).decode()})[0]

    assert (status("alice"), status("bob")) == (200, 401)
    (authority.directory / "agent.pem").unlink()
    file = authority.directory / "web.yml"
    draft = file.with_suffix(".draft")
    draft.write_text(file.read_text().replace("alice", "bob"))
    draft.rename(file)
    assert (status("alice"), status("bob")) == (401, 200)
