"""A user, a password or a query in an address is shown nowhere."""

import base64
import http.server
import json
import subprocess
import threading

import pytest
from conftest import AGENT, environment
from servers import fetch, free_port, wait_until

USER, PASSWORD, TOKEN = "SECRETUSER", "SECRETWORD", "SECRETTOKEN"
# tests/unit/net/url_test.cc has more forms.
GATEWAYS = [
    f"http://{USER}:{PASSWORD}@127.0.0.1:1/path?token={TOKEN}",
    f"127.0.0.1:1/path?token={TOKEN}",
    f"dns+http://{USER}:{PASSWORD}@gateway.invalid:1/path?token={TOKEN}",
    f"good:9091,http://{USER}:{PASSWORD}@127.0.0.1:1/path?token={TOKEN},other:9091",
]


def call(*arguments, **env):
    result = subprocess.run([AGENT, *arguments], env=environment(**env), capture_output=True, text=True, timeout=30)
    return result.returncode, result.stdout + result.stderr


def pages(agent):
    paths = ["/metrics", "/", "/api/v1/status", "/api/v1/metadata", "/api/v1/events"]
    return "".join(fetch(agent.url + path)[1] for path in paths)


@pytest.mark.parametrize("address", GATEWAYS)
def test_an_address_of_a_gateway_that_is_refused(address, tmp_path):
    config = tmp_path / "global_config.yaml"
    config.write_text(f"PersiaMetricsConfig:\n  gateway_address: '{address}'\n")
    listed = tmp_path / "listed.yaml"
    listed.write_text(f"PersiaMetricsConfig:\n  gateway_address:\n    - good:9091\n    - '{address}'\n")
    misspelt = tmp_path / "misspelt.yaml"
    misspelt.write_text(f"PersiaMetricsConfig:\n  gateway_adress: '{address}'\n")
    for arguments, env in [
        ([f"--gateway={address}"], {}),
        ([f"--gatway={address}"], {}),
        ([], {"PERSIA_METRICS_GATEWAY_ADDR": address}),
        ([f"--config={config}"], {}),
        ([f"--config={listed}"], {}),
        ([f"--config={misspelt}"], {}),
    ]:
        for command in (["check-config"], ["explain", "a"], ["once", f"--metrics-dir={tmp_path / 'job'}"]):
            status, text = call(*command, "--log-level=debug", *arguments, **env)
            assert status == 2 and "SECRET" not in text
            assert "gat" in text, "the error names the setting"


def test_an_agent_with_a_refused_address_in_its_environment(job):
    flags = [f"--gateway={GATEWAYS[0]}", "--log-level=debug"]
    agent = job.exec("sleep", "600", flags=flags, env={"PERSIA_METRICS_GATEWAY_ADDR": GATEWAYS[0]})
    wait_until(agent.metrics, "the agent's pages")
    shown = pages(agent)
    assert "SECRET" not in shown + agent.output()
    assert "must not contain a user and password" in agent.output()


def test_a_query_of_a_remote_write_url_is_sent_but_not_shown(job):
    """Nothing listens there: the errors name the address."""
    port = free_port()
    agent = job.agent("--gateway=off", "--log-level=debug", f"--remote-write=http://127.0.0.1:{port}/write?token={TOKEN}")
    wait_until(lambda: f"127.0.0.1:{port}: " in agent.output(), "an error of the target")
    assert "SECRET" not in pages(agent) + agent.output()
    status, text = call("check-config", f"--remote-write=http://127.0.0.1:1/write?token={TOKEN}", "--log-level=debug")
    assert status == 0 and "127.0.0.1:1/write" in text and "SECRET" not in text


@pytest.mark.parametrize("end", ["\n", "\n/x", "\u0085", "x" * 5000], ids=["line end", "second line", "C1 control", "too long"])
def test_a_url_in_the_environment_with_more_than_it_should_have(end):
    """A secret of Kubernetes often ends with a line end, which is left out."""
    for url in (f"http://{USER}:{PASSWORD}@127.0.0.1:1/write{end}", f"http://127.0.0.1:1/write?token={TOKEN}{end}"):
        status, text = call("check-config", "--log-level=debug", PERSIA_METRICS_REMOTE_WRITE_URL=url)
        assert "SECRET" not in text
        if end == "\n" and USER not in url:
            assert status == 0 and "127.0.0.1:1/write" in text
        else:
            assert status == 2 and "PERSIA_METRICS_REMOTE_WRITE_URL" in text or end == "\u0085"


@pytest.mark.parametrize("flag", ["--remote-write", "--listen", "--web-external-host"])
def test_another_address_that_is_refused(flag):
    status, text = call("check-config", f"{flag}=http://{USER}:{PASSWORD}@h:1", "--log-level=debug")
    assert status == 2 and "SECRET" not in text


class Echo(http.server.BaseHTTPRequestHandler):
    """Answers with the whole head of the request, as the error pages of some proxies do."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        body = f"refused: {self.requestline} {dict(self.headers)}".encode()
        self.send_response(407)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def echo():
    """The keys of a target whose proxy is the server."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    address = f"127.0.0.1:{server.server_address[1]}"
    yield {"url": f"http://127.0.0.2:1/write?token={TOKEN}", "proxy_url": f"http://{USER}:{PASSWORD}@{address}"}
    server.shutdown()
    server.server_close()


def test_an_answer_that_repeats_the_request_shows_no_secret(job, tmp_path, echo):
    config = tmp_path / "echo.yaml"
    target = {"name": "db", "headers": {"X-Api-Key": "SECRETHEADER"}, "metadata_config": {"send": False}, **echo}
    config.write_text(json.dumps({"PersiaMetricsConfig": {"remote_write": [target]}}))
    agent = job.agent(f"--config={config}", "--gateway=off", "--log-level=debug")
    wait_until(lambda: "cannot send to db: status 407" in agent.output(), "the answer in the log")
    line = next(line for line in agent.output().splitlines() if "cannot send to db" in line)
    assert "refused: POST" in line and "X-Api-Key" in line and "***" in line
    pair = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    assert "SECRET" not in agent.output() + pages(agent) and pair not in agent.output() + pages(agent)
