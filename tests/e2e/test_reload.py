"""Settings that change while an agent runs, by SIGHUP and by POST: valid and invalid ones."""

import signal
import tempfile
from pathlib import Path

import pytest
from conftest import GatewayHandle
from servers import fetch, wait_until


class Settings:
    """The job's config file."""

    def __init__(self, path):
        self.path = path

    def write(self, **values):
        lines = [f"  {key}: {value}\n" for key, value in values.items()]
        draft = self.path.with_suffix(".draft")
        draft.write_text("PersiaMetricsConfig:\n" + "".join(lines))
        draft.rename(self.path)


@pytest.fixture
def settings(tmp_path):
    return Settings(tmp_path / "config.yaml")


@pytest.fixture
def other_gateway(tmp_path):
    """Named first by tests, so that it is stopped last, after the agents' last pushes."""
    handle = GatewayHandle(Path(tempfile.mkdtemp(dir=tmp_path)))
    yield handle
    handle.server.stop()


def start(job, settings, *more, **values):
    """An agent whose settings, except the directory and the address of the pages, come from the file instead of flags."""
    settings.write(**values)
    agent = job.agent(f"--config={settings.path}", *more)
    wait_until(agent.metrics, "the agent's pages")
    return agent


@pytest.fixture
def bare_job(job):
    """A job whose agents get only paths and addresses by flag."""
    usual = job.flags

    def flags(address, more):
        in_the_file = ("--job", "--gateway", "--push-interval")
        return [flag for flag in usual(address, ()) if not flag.startswith(in_the_file)] + list(more)

    job.flags = flags
    return job


def reloads(agent, result):
    return agent.metrics().one("persia_agent_config_reloads_total", result=result)


def test_sighup_leads_pushes_to_another_gateway_at_once(other_gateway, bare_job, settings, gateway):
    common = {"job_name": bare_job.name, "push_interval_seconds": 3600}
    agent = start(bare_job, settings, gateway_address=gateway.address, **common)
    worker = bare_job.worker()
    worker.tell("count my_app batches 3")
    wait_until(lambda: agent.metrics().one("my_app_batches") == 3, "the agent to have read the worker")
    settings.write(gateway_address=other_gateway.address, **common)
    agent.signal(signal.SIGHUP)
    other_gateway.wait_for("my_app_batches", 3)
    wait_until(lambda: reloads(agent, "success") == 1, "a scrape that shows the reload")
    assert other_gateway.address in fetch(agent.url + "/api/v1/status")[1]
    counted = {"gateway": other_gateway.address, "result": "success"}
    wait_until(lambda: agent.metrics().one("persia_agent_pushes_total", **counted) == 1, "the push to be counted")


def test_a_push_under_way_does_not_hold_up_the_next_gateway(other_gateway, bare_job, settings, gateway):
    common = {"job_name": bare_job.name, "push_interval_seconds": 3600, "push_timeout_seconds": 60}
    gateway.server.signal(signal.SIGSTOP)
    try:
        agent = start(bare_job, settings, gateway_address=gateway.address, **common)
        worker = bare_job.worker()
        worker.tell("count my_app batches 3")
        wait_until(lambda: agent.metrics().one("my_app_batches") == 3, "the agent to have read the worker")
        settings.write(gateway_address=other_gateway.address, **common)
        agent.signal(signal.SIGHUP)
        other_gateway.wait_for("my_app_batches", 3)
    finally:
        gateway.server.signal(signal.SIGCONT)


def test_interval_labels_and_log_take_effect(bare_job, settings, gateway):
    common = {"job_name": bare_job.name, "gateway_address": gateway.address}
    agent = start(bare_job, settings, push_interval_seconds=3600, labels="{team: ads}", log_level="error", **common)
    worker = bare_job.worker()
    wait_until(lambda: agent.metrics().one("persia_agent_series", team="ads"), "the agent's own series")
    settings.write(push_interval_seconds=0.2, labels="{team: search}", log_level="info", log_format="json", **common)
    agent.signal(signal.SIGHUP)
    worker.tell("count my_app batches 3")
    gateway.wait_for("my_app_batches", 3, team="search")
    wait_until(lambda: agent.metrics().one("my_app_batches", team="search") == 3, "the same on the agent's page")
    shown = agent.metrics()
    assert shown.one("persia_agent_series", team="search") and not shown.one("persia_agent_series", team="ads")
    assert shown.one("process_start_time_seconds", team="search")
    changes = "changed: push_interval_seconds, labels, log_level, log_format"
    wait_until(lambda: changes in agent.output(), "the line, which comes after the change")
    assert '"event":"config.reloaded"' in agent.output()


def test_bad_file_is_refused_as_a_whole(bare_job, settings, gateway):
    good = {"job_name": bare_job.name, "gateway_address": gateway.address, "push_interval_seconds": 0.2}
    agent = start(bare_job, settings, "--web.enable-lifecycle=true", **good)
    worker = bare_job.worker()
    worker.tell("count my_app batches 3")
    gateway.wait_for("my_app_batches", 3)
    before = agent.metrics().one("persia_agent_config_last_reload_success_timestamp_seconds")
    settings.write(**{**good, "labels": "{team: ads}", "push_interval_seconds": "often", "gateway_adress": "x"})
    agent.signal(signal.SIGHUP)
    wait_until(lambda: reloads(agent, "failure") == 1, "the refusal to be counted")
    place = f"{settings.path}:4:26: push_interval_seconds: "
    wait_until(lambda: place in agent.output() and 'did you mean "gateway_address"' in agent.output(), "the refusal in the log")
    status, body = fetch(agent.url + "/-/reload", method="POST")
    assert status == 500 and place in body and "gateway_adress" in body
    wait_until(lambda: agent.metrics().one("persia_agent_config_last_reload_successful") == 0, "the refusal on /metrics")
    assert agent.metrics().one("persia_agent_config_last_reload_success_timestamp_seconds") == before
    worker.tell("count my_app batches 3")
    gateway.wait_for("my_app_batches", 6)
    assert gateway.metrics().one("my_app_batches", team="ads") is None
    settings.path.unlink()
    assert fetch(agent.url + "/-/reload", method="POST")[0] == 500
    settings.write(**good)
    assert fetch(agent.url + "/-/reload", method="POST") == (200, "Reloaded.\n")
    # A scrape may show a collection that is up to a second old.
    wait_until(lambda: agent.metrics().one("persia_agent_config_last_reload_successful") == 1, "the reload on /metrics")
    assert agent.metrics().one("persia_agent_config_last_reload_success_timestamp_seconds") > before


def test_a_file_with_an_error_at_the_start_is_corrected_by_a_reload(bare_job, settings, gateway):
    """The agent starts without its gateway; the wrong variable and flag, which no reload can correct, do not refuse the reload."""
    agent = start(bare_job, settings, "--push-timeout=soon", job_name=bare_job.name, gateway_adress=gateway.address, push_interval_seconds="often")
    worker = bare_job.worker()
    worker.tell("count my_app batches 3")
    wait_until(lambda: agent.metrics().one("my_app_batches") == 3, "the agent to have read the worker")
    assert agent.metrics().one("persia_agent_config_errors") == 3
    settings.write(job_name=bare_job.name, gateway_address=gateway.address, push_interval_seconds="200ms")
    agent.signal(signal.SIGHUP)
    gateway.wait_for("my_app_batches", 3)
    wait_until(lambda: reloads(agent, "success") == 1 and agent.metrics().one("persia_agent_config_errors") == 1, "the flag's error alone")


@pytest.mark.parametrize("mode", ["run", "exec"])
def test_a_pipe_changes_no_setting_that_a_reload_compares(job, tmp_path, mode):
    flags = [f"--fifo={tmp_path / 'fifo'}", "--web.enable-lifecycle"]
    agent = job.exec("sleep", "600", flags=flags) if mode == "exec" else job.agent(*flags)
    wait_until(agent.metrics, "the agent's pages")
    assert fetch(agent.url + "/-/reload", method="POST") == (200, "Reloaded.\n")
    wait_until(lambda: reloads(agent, "success") == 1, "a scrape that shows the reload")
    assert "read at the start only" not in agent.output()


def test_what_cannot_change_is_named_once_and_stays(bare_job, settings, gateway):
    good = {"job_name": bare_job.name, "gateway_address": gateway.address, "push_interval_seconds": 0.2}
    agent = start(bare_job, settings, **good)
    settings.write(**{**good, "job_name": "another", "run_id": "r2", "enable_metrics": "false", "push_interval_seconds": 0.3})
    agent.signal(signal.SIGHUP)
    wait_until(lambda: "config.fixed" in agent.output() or "read at the start only" in agent.output(), "the warning")
    warnings = [line for line in agent.output().splitlines() if "read at the start only" in line]
    assert len(warnings) == 1 and "enable_metrics, job_name, run_id" in warnings[0]
    worker = bare_job.worker()
    worker.tell("count my_app batches 3")
    gateway.wait_for("my_app_batches", 3, job=bare_job.name)


def test_post_without_enable_lifecycle_is_forbidden(job, gateway):
    agent = job.agent()
    wait_until(agent.metrics, "the agent's pages")
    status, body = fetch(agent.url + "/-/reload", method="POST")
    assert status == 403 and "enable_lifecycle" in body
    assert fetch(agent.url + "/-/reload")[0] == 405
    assert reloads(agent, "success") == 0


def test_exec_passes_sighup_on_and_reloads_by_post(job, gateway):
    script = "trap 'echo hung up' HUP; echo ready; while :; do sleep 0.1; done"
    agent = job.exec("sh", "-c", script, flags=["--web.enable-lifecycle=true"])
    wait_until(agent.metrics, "the agent's pages")
    wait_until(lambda: "ready" in agent.output(), "the command's trap")
    agent.signal(signal.SIGHUP)
    wait_until(lambda: "hung up" in agent.output(), "the command to get its signal")
    assert reloads(agent, "success") == 0
    assert fetch(agent.url + "/-/reload", method="POST")[0] == 200
    wait_until(lambda: reloads(agent, "success") == 1, "a scrape that shows the reload")


def test_reloads_that_pile_up_lose_nothing(other_gateway, bare_job, settings, gateway):
    """Switches between two gateways while a worker counts: the last one has all counts."""
    common = {"job_name": bare_job.name, "push_interval_seconds": 0.2}
    agent = start(bare_job, settings, "--web.enable-lifecycle=true", gateway_address=gateway.address, **common)
    worker = bare_job.worker()
    wait_until(agent.metrics, "the agent's pages")
    for turn in range(21):
        settings.write(gateway_address=(gateway, other_gateway)[turn % 2].address, **common)
        assert fetch(agent.url + "/-/reload", method="POST")[0] == 200
        worker.tell("count my_app batches 1")
    gateway.wait_for("my_app_batches", 21)
    wait_until(lambda: reloads(agent, "success") == 21, "a scrape that shows the last reload")
