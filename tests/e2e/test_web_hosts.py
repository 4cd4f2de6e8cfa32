"""Requests that a page of another site makes a browser send are refused; scrapes by any name are answered."""

import base64
import socket

import pytest
from servers import wait_until
from tls import bcrypt

PROMETHEUS = {"User-Agent": "Prometheus/3.5.0", "Accept-Encoding": "gzip", "Accept": "text/plain;version=0.0.4"}
# As Chrome sends them to a plain http origin, which gets no Sec-Fetch-*.
CHROME = {"User-Agent": "Mozilla/5.0 Chrome/140", "Accept-Encoding": "gzip, deflate", "Accept-Language": "en"}
# A script replaces the headers that it may. Accept-Encoding is not one of them, unless it asks for a range.
DISGUISED = {"User-Agent": "Prometheus/3.5.0", "Accept": "text/plain", "Accept-Encoding": "gzip, deflate", "Accept-Language": ""}
RANGED = {"User-Agent": "Prometheus/3.5.0", "Accept-Encoding": "identity", "Range": "bytes=0-"}

SCRAPED = ["/metrics", "/-/healthy", "/-/ready"]
PAGES = ["/", "/assets/page.js", "/api/v1/status", "/api/v1/series?family=x", "/nothing"]


def send(agent, path, hosts, headers, method="GET", version="1.1"):
    """Status and body of a request with these Host headers."""
    address, port = agent.address.split(":")
    lines = [f"{method} {path} HTTP/{version}"]
    lines += [f"Host: {host}".rstrip() for host in hosts]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if method == "POST":
        lines.append("Content-Length: 0")
    with socket.create_connection((address, int(port)), timeout=10) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
        answer = b""
        while part := connection.recv(65536):
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body.decode("utf-8", "replace")


def start(job, *flags):
    agent = job.agent("--web.enable-lifecycle", *flags)
    wait_until(agent.metrics, "the agent's pages")
    return agent


@pytest.fixture
def agent(job):
    return start(job)


OWN_HOSTS = ["127.0.0.1:19091", "10.1.2.3", "[::1]:19091", "[fd00::1]", "localhost:19091", "LOCALHOST", "localhost.", "app.localhost:1"]
OWN_HOSTS += ["agent:19091", "metrics_agent", "Node-1.", "node-1.local:19091", "agent.persia.svc.cluster.local:19091", "node.internal"]


def test_a_browser_may_use_the_machines_own_and_private_names(agent):
    for host in [*OWN_HOSTS, socket.gethostname(), socket.getfqdn() + ":19091"]:
        for path in [*SCRAPED, "/", "/api/v1/status"]:
            assert send(agent, path, [host], CHROME)[0] == 200, host
        assert send(agent, "/-/reload", [host], CHROME, "POST")[0] == 200, host


def test_a_request_with_more_headers_than_are_read_is_refused(agent):
    """A page can send more than 64 headers of its own. The server keeps 64, and without the refusal drops those by which a browser is known."""
    many = {f"X-{i}": "1" for i in range(150)}
    for path in [*SCRAPED, "/"]:
        status, body = send(agent, path, ["evil.example"], {**many, **CHROME, "Origin": "http://evil.example"})
        assert status == 431 and "more than 63 headers" in body


FOREIGN_HOSTS = ["evil.example:19091", "EVIL.example", "evil.example.", "127.0.0.1.evil.example", "localhost.evil.example", "xn--nxasmq6b.com"]


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_a_browser_that_was_rebound_to_the_agent_reads_nothing(agent, host):
    for headers in (CHROME, DISGUISED, RANGED):
        for path in [*SCRAPED, *PAGES]:
            status, body = send(agent, path, [host], headers)
            assert status == 421 and f'"{host}"' in body and "web_external_host" in body
        assert send(agent, "/-/reload", [host], headers, "POST")[0] == 421
    assert "Reloaded" not in agent.output() and agent.metrics().one("persia_agent_config_reloads_total", result="success") == 0
    wait_until(lambda: f'host "{host}"' in agent.output(), "the log to name the host")


def test_scrapers_and_health_checks_use_any_name(agent):
    host = FOREIGN_HOSTS[0]
    for headers in (PROMETHEUS, {**PROMETHEUS, "Accept-Encoding": "identity"}, {}, {"User-Agent": "curl/8.0"}):
        for path in SCRAPED:
            assert send(agent, path, [host], headers)[0] == 200
        assert send(agent, "/api/v1/status", [host], headers)[0] == 421
        assert send(agent, "/-/reload", [host], headers, "POST")[0] == 421


def test_a_refused_host_is_logged_at_most_a_few_times(agent):
    for number in range(40):
        assert send(agent, "/", [f"evil{number}.example"], CHROME)[0] == 421
    assert agent.output().count("evil") < 10


def test_a_malformed_host_and_two_hosts_are_a_bad_request(agent):
    for host in ("a b", "a/b", "[::1", "[zz]", "::1", "a:b", "a:1:2", "user@a", "a:99999", "a:", "evil.example:19091, a"):
        for headers in (CHROME, PROMETHEUS):
            assert send(agent, "/metrics", [host], headers)[0] == 400, host
    for hosts in (["localhost", "evil.example"], ["localhost", "localhost"]):
        assert send(agent, "/metrics", hosts, PROMETHEUS)[0] == 400


def test_a_client_without_a_host_is_no_browser(agent):
    for hosts in ([], [""]):
        for version in ("1.0", "1.1"):
            for path in [*SCRAPED, "/", "/api/v1/status"]:
                assert send(agent, path, hosts, PROMETHEUS, version=version)[0] == 200


def test_behind_a_password_any_host_is_answered_but_no_other_site(job, tmp_path):
    """The browser sends no password to a page that was rebound."""
    (tmp_path / "web.yaml").write_text(f"basic_auth_users:\n  alice: {bcrypt('secret')}\n")
    agent = job.agent("--web.enable-lifecycle", f"--web.config.file={tmp_path / 'web.yaml'}")
    wait_until(lambda: agent.address and send(agent, "/", ["localhost"], CHROME)[0] == 401, "the agent's pages")
    allowed = {**CHROME, "Authorization": "Basic " + base64.b64encode(b"alice:secret").decode()}
    for host in ("evil.example", "localhost"):
        assert send(agent, "/", [host], CHROME)[0] == 401
        assert send(agent, "/", [host], allowed)[0] == 200
        assert send(agent, "/-/reload", [host], {**allowed, "Origin": "https://other.example"}, "POST")[0] == 403
        assert send(agent, "/-/reload", [host], {**allowed, "Origin": f"https://{host}"}, "POST")[0] == 200


def test_names_that_are_set_are_answered_also_for_a_proxy(job):
    agent = start(job, "--web.external-host=metrics.example.org,.gpu.example.org")
    for host in ("metrics.example.org", "METRICS.example.org.:443", "a.gpu.example.org:19091", "a.b.gpu.example.org"):
        assert send(agent, "/", [host], CHROME)[0] == 200
    for host in ("example.org", "gpu.example.org", "evilgpu.example.org", "metrics.example.org.evil.example"):
        assert send(agent, "/", [host], CHROME)[0] == 421
    assert send(agent, "/-/reload", ["agent:19091"], {"Origin": "http://metrics.example.org"}, "POST")[0] == 200
    assert send(agent, "/-/reload", ["agent:19091"], {"Origin": "http://evil.example"}, "POST")[0] == 403


# Of another site, another port, none, no URL, an empty one.
REFUSED_ORIGINS = [{"Origin": origin} for origin in ("http://evil.example", "http://127.0.0.1:3000", "null", "127.0.0.1", "")]
REFUSED_ORIGINS += [{"Sec-Fetch-Site": site} for site in ("cross-site", "same-site")]
REFUSED_ORIGINS += [{"Sec-Fetch-Site": "cross-site", "Origin": "null"}]


def test_a_post_from_another_site_changes_nothing(agent):
    for headers in REFUSED_ORIGINS:
        status, body = send(agent, "/-/reload", [agent.address], {**CHROME, **headers}, "POST")
        assert status == 403 and "another site" in body, headers
        # A link to the page from another site works.
        assert send(agent, "/", [agent.address], {**CHROME, **headers})[0] == 200, headers
    assert agent.metrics().one("persia_agent_config_reloads_total", result="success") == 0


def test_a_post_of_the_page_or_of_a_program_is_answered(agent):
    own = f"http://{agent.address}"
    for headers in ({}, {"Origin": own}, {"Origin": own.upper()}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}):
        assert send(agent, "/-/reload", [agent.address], headers, "POST")[0] == 200
    # A proxy that gives the agent another Host than the browser's.
    behind = {"Sec-Fetch-Site": "same-origin", "Origin": "https://metrics.example.org"}
    assert send(agent, "/-/reload", ["agent:19091"], behind, "POST")[0] == 200
