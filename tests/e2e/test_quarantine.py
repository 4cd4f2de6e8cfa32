"""Metrics that the gateway refuses are quarantined; all others are pushed."""

import urllib.request

import pytest
from servers import wait_until
from tls import Proxy


def put(gateway, path, text):
    request = urllib.request.Request(f"http://{gateway.address}/metrics/{path}", data=text.encode(), method="PUT")
    urllib.request.urlopen(request, timeout=10).close()


def lines_with(agent, words):
    return [line for line in agent.output().splitlines() if words in line]


def test_offenders_are_held_back_and_all_else_arrives(job, gateway):
    put(gateway, "job/another", "# TYPE my_app_batches gauge\nmy_app_batches 1\n# TYPE my_app_rows gauge\nmy_app_rows 1\n")
    agent = job.agent()
    worker = job.worker()
    worker.tell("count my_app batches 11")
    worker.tell("count my_app rows 12")
    worker.tell("count my_app good 13")
    gateway.wait_for("my_app_good", 13, job=job.name)
    worker.tell("count my_app good 1")
    gateway.wait_for("my_app_good", 14, job=job.name)
    assert gateway.metrics().one("my_app_batches", job=job.name) is None
    gateway.wait_for("persia_agent_quarantined_series", 2, reason="gateway")
    assert agent.metrics().one("my_app_batches") == 11
    assert agent.metrics().one("persia_agent_pushes_total", result="rejected") == 0
    for name in ("my_app_batches", "my_app_rows"):
        # Both may have been refused together, in one line.
        assert len([line for line in lines_with(agent, "the gateway refuses ") if f'"{name}"' in line]) == 1


@pytest.fixture
def small_gateway(gateway):
    """The gateway behind a proxy that takes at most 64 KiB, which nginx calls `client_max_body_size`."""
    proxy = Proxy(gateway.port)
    proxy.most_bytes = 65536
    yield proxy
    proxy.stop()


def test_a_label_for_each_step_costs_its_family_and_not_the_group(job, gateway, small_gateway):
    agent = job.agent(f"--gateway=127.0.0.1:{small_gateway.port}")
    worker = job.worker()
    worker.tell("count my_app good 1")
    for step in range(1200):
        worker.popen.stdin.write(f"count_feat my_app steps {'step_' * 8}{step} 1\n")
    worker.popen.stdin.flush()
    wait_until(lambda: agent.metrics().one("persia_agent_dropped_series", reason="push_bytes") == 1200, "the family to be left out")
    worker.tell("count my_app good 1")
    gateway.wait_for("my_app_good", 2, job=job.name)
    assert "my_app_steps{" not in gateway.metrics().text
    assert "my_app_steps{" in agent.metrics().text
    assert len(lines_with(agent, '"my_app_steps"')) == 1
