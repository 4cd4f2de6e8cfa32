"""A user, a password or a query in an address is shown nowhere."""

import subprocess

import pytest
from conftest import AGENT, environment
from servers import fetch, free_port, wait_until

USER, PASSWORD, TOKEN = "SECRETUSER", "SECRETWORD", "SECRETTOKEN"
GATEWAYS = [
    f"http://{USER}:{PASSWORD}@127.0.0.1:1/path?token={TOKEN}",
    f"http://{USER}:{PASSWORD}@127.0.0.1:1/path",
    f"{USER}:{PASSWORD}@127.0.0.1:1",
    f"127.0.0.1:1/path?token={TOKEN}",
    f"127.0.0.1:0/path?token={TOKEN}",
    f"http://127.0.0.1:1/path?mail=a@{TOKEN}",
    f"http://{USER}:{PASSWORD[:6]}?{PASSWORD}@127.0.0.1:1",
    f"http://{USER}:{PASSWORD[:6]}/{PASSWORD}@127.0.0.1:1",
    f"ftp://127.0.0.1#{TOKEN}",
    f"http://[::1/path?token={TOKEN}",
    f"dns+http://{USER}:{PASSWORD}@gateway.invalid:1/path?token={TOKEN}",
    f"good:9091,http://{USER}:{PASSWORD}@127.0.0.1:1/path?token={TOKEN},other:9091",
    f"good:9091,http://127.0.0.1:1/?token={TOKEN}",
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


@pytest.mark.parametrize("url", GATEWAYS[:2])
def test_a_url_of_remote_write_that_is_refused(url):
    status, text = call("check-config", f"--remote-write={url}", "--log-level=debug")
    assert status == 2 and "SECRET" not in text
