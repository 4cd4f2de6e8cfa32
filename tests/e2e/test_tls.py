"""A gateway behind TLS and credentials: trust, authentication, and that no secret is printed."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import AGENT, environment
from servers import Process, fetch, find_program, free_port, wait_until
from tls import Authority, Proxy, bcrypt

SECRET = "s3cr3t&w0rd"  # with a character that HTML escapes
QUICK = "--push-timeout=0.5"  # a failed push is retried until its timeout


@pytest.fixture
def proxy(gateway):
    proxies = []

    def start(*arguments):
        proxies.append(Proxy(gateway.port, *arguments))
        return proxies[-1]

    yield start
    for each in proxies:
        each.stop()


def said(agent, text):
    """Waits for it in the log, or as the last error of its status, because the log reports an outage only once."""

    def all_of_it():
        return agent.output() + json.loads(fetch(agent.url + "/api/v1/status")[1])["gateway"]["last_error"]

    try:
        wait_until(lambda: text in all_of_it(), repr(text))
    except TimeoutError:
        raise TimeoutError(f"the agent did not say {text!r}; it said:\n{all_of_it()}") from None


def test_gateway_with_tls_and_basic_auth_of_its_own(job, tmp_path, authority, started):
    """Debian's gateway itself requires TLS, a password and a client certificate."""
    server = authority.issue("server", "IP:127.0.0.1")
    client = authority.issue("client", "DNS:client")
    hashed = bcrypt(SECRET)
    web = tmp_path / "web.yml"
    web.write_text(
        f"tls_server_config:\n  cert_file: {server[0]}\n  key_file: {server[1]}\n  client_ca_file: {authority.file}\n"
        f"  client_auth_type: RequireAndVerifyClientCert\nbasic_auth_users:\n  trainer: {hashed}\n"
    )
    port = free_port()
    command = [find_program("prometheus-pushgateway"), f"--web.listen-address=127.0.0.1:{port}", f"--web.config.file={web}"]
    started(Process([*command, "--persistence.file="], tmp_path / "gateway.log"))
    password = tmp_path / "password"
    password.write_text(SECRET + "\n")
    worker = job.worker()
    worker.tell("count my_app batches 3")
    flags = [
        f"--gateway=https://127.0.0.1:{port}",
        f"--gateway-ca-file={authority.file}",
        "--gateway-username=trainer",
        f"--gateway-password-file={password}",
    ]
    certificate = [f"--gateway-cert-file={client[0]}", f"--gateway-key-file={client[1]}"]

    def shown():
        curl = ["--cacert", authority.file, "--cert", client[0], "--key", client[1], "--user", f"trainer:{SECRET}"]
        command = ["curl", "-s", "-m", "5", *curl, f"https://127.0.0.1:{port}/metrics"]
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=10).stdout

    agent = job.agent(QUICK, *flags, *certificate)
    said(agent, f"pushing to 127.0.0.1:{port}")
    wait_until(lambda: 'my_app_batches{' in shown(), "the batches on the gateway")

    password.write_text("wrong\n")
    said(agent, "status 401")
    assert "wrong" not in agent.output()
    agent.stop()
    password.write_text(SECRET)
    agent = job.agent(QUICK, *flags)
    said(agent, "client certificate")
    agent.stop()
    agent = job.agent(QUICK, *flags, certificate[0], f"--gateway-key-file={server[1]}")
    said(agent, "cannot be used")


def test_right_authority_passes_and_wrong_one_is_refused(job, gateway, authority, proxy, tmp_path):
    server = proxy(authority.issue("server", "IP:127.0.0.1"))
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other", "other CA")
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(other.file.read_bytes())
    worker = job.worker()
    worker.tell("count my_app batches 3")
    agent = job.agent(QUICK, f"--gateway=https://127.0.0.1:{server.port}", f"--gateway-ca-file={trusted}")
    said(agent, "the gateway's certificate is refused")
    assert not server.authorizations and gateway.metrics().one("my_app_batches") is None
    trusted.write_text("no certificate\n")
    said(agent, f'the CA file "{trusted}" holds no certificate')
    trusted.write_bytes(authority.file.read_bytes())
    said(agent, f"pushing to 127.0.0.1:{server.port}")
    assert gateway.metrics().one("my_app_batches") == 3
    # An open connection ends when its certificate authority is no longer trusted.
    trusted.write_bytes(other.file.read_bytes())

    def refused():
        return "the gateway's certificate is refused" in json.loads(fetch(agent.url + "/api/v1/status")[1])["gateway"]["last_error"]

    wait_until(refused, "another refusal")


def test_without_ca_file_the_systems_certificates_decide(job, authority, proxy):
    server = proxy(authority.issue("server", "IP:127.0.0.1"))
    agent = job.agent(QUICK, f"--gateway=https://127.0.0.1:{server.port}")
    said(agent, "the gateway's certificate is refused")


def test_server_name_is_verified_and_told(job, gateway, authority, proxy):
    certificate = authority.issue("server", "DNS:gateway.example.com")
    server = proxy(certificate)
    flags = [f"--gateway=https://127.0.0.1:{server.port}", f"--gateway-ca-file={authority.file}"]
    worker = job.worker()
    worker.tell("count my_app batches 3")
    agent = job.agent(QUICK, *flags)
    said(agent, "the gateway's certificate is refused")
    agent.stop()
    server = proxy(certificate)  # the first one may still have a connection to name
    job.agent(QUICK, f"--gateway=https://127.0.0.1:{server.port}", flags[1], "--gateway-server-name=gateway.example.com")
    gateway.wait_for("my_app_batches", 3)
    assert set(server.server_names) == {"gateway.example.com"}


def test_token_file_that_changes_under_way(job, proxy, tmp_path):
    server = proxy()
    token = tmp_path / "token"
    token.write_text("first-token\n")
    agent = job.agent(QUICK, f"--gateway=127.0.0.1:{server.port}", f"--gateway-bearer-token-file={token}")
    wait_until(lambda: "Bearer first-token" in server.authorizations, "the first token")
    (tmp_path / "draft").write_text("other-token\n")
    (tmp_path / "draft").rename(token)
    wait_until(lambda: "Bearer other-token" in server.authorizations, "the other token")
    token.write_text("")
    said(agent, f'bearer token file "{token}": is empty')
    assert None not in server.authorizations
    assert "-token" not in agent.output().replace(str(token), "")


@pytest.mark.parametrize("by", ["setting", "environment"])
def test_pushes_go_through_the_proxy(job, gateway, monkeypatch, by):
    """A PushGateway also answers requests for other hosts, as a proxy gets them. Only the proxy looks the name up."""
    proxy = f"http://{gateway.address}"
    if by == "environment":
        monkeypatch.setenv("HTTP_PROXY", proxy)
    flag = f"--gateway-proxy-url={proxy}" if by == "setting" else "--gateway-proxy-from-environment=true"
    job.agent("--gateway=http://metrics-gateway.example:9091", flag)
    job.worker().tell("count my_app steps 3")
    gateway.wait_for("my_app_steps", 3)


WAYS = {
    "password in the environment": ({"PERSIA_METRICS_GATEWAY_USERNAME": "trainer", "PERSIA_METRICS_GATEWAY_PASSWORD": SECRET}, ""),
    "token in YAML": ({}, f"  gateway_bearer_token: {SECRET}\n"),
    "password file": ({"PERSIA_METRICS_GATEWAY_USERNAME": "trainer"}, "  gateway_password_file: {file}\n"),
}


@pytest.mark.parametrize(("way", "log_format"), [*zip(WAYS, ("text", "json", "text"))])
def test_secrets_are_seen_nowhere(job, proxy, tmp_path, way, log_format):
    """The gateway refuses, and echoes the request."""
    env, settings = WAYS[way]
    (tmp_path / "secret").write_text(SECRET)
    config = tmp_path / "config.yaml"
    config.write_text("PersiaMetricsConfig:\n  log_level: debug\n" + settings.replace("{file}", str(tmp_path / "secret")))
    server = proxy()
    server.refuse = lambda headers: f"you sent {headers['Authorization']}, that is {SECRET}"
    flags = [QUICK, f"--config={config}", f"--gateway=127.0.0.1:{server.port}", f"--log-format={log_format}"]

    checked = subprocess.run([AGENT, "check-config", *flags], env=environment(**env), capture_output=True, text=True, timeout=30)
    assert checked.returncode == 0, checked.stderr
    job_environment = tmp_path / "environment of the command"
    script = f"cat /proc/self/environ > '{job_environment}.draft'; mv '{job_environment}.draft' '{job_environment}'; exec sleep 600"
    agent = job.exec("sh", "-c", script, flags=flags, env=env)
    said(agent, "status 401")
    wait_until(job_environment.exists, "the command's environment")
    seen = {
        "log": agent.output(),
        "check-config": checked.stdout + checked.stderr,
        "status": fetch(agent.url + "/api/v1/status")[1],
        "/metrics": agent.metrics().text,
        "ps": subprocess.run(["ps", "-ewwwo", "pid,args", "e"], capture_output=True, text=True, timeout=30, env={}).stdout,
        "environ": Path(f"/proc/{agent.pid}/environ").read_text(errors="replace"),
        "job": job_environment.read_text(errors="replace"),
    }
    sent = server.authorizations[0]
    assert sent is not None
    for where, text in seen.items():
        assert SECRET not in text and SECRET.encode().hex() not in text, where
        assert sent.split()[1] not in text, where
    assert "you sent" in seen["log"] and "***" in seen["log"]
    if way != "password file":
        assert "(set)" in seen["check-config"]
    assert str(os.getpid()) in seen["ps"]
