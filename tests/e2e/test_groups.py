"""The agent deletes the groups of identities that ended, and no others."""

import re
import signal
import tempfile
from pathlib import Path

import pytest

from conftest import Job
from servers import wait_until


def keys(gateway):
    """The grouping keys on the gateway, as (instance, role, ip_addr)."""
    found = [group["labels"] for group in gateway.groups()]
    return sorted(tuple(labels.get(name, "") for name in ("instance", "role", "ip_addr")) for labels in found)


def wait_for_keys(gateway, wanted):
    def seen():
        have = keys(gateway)
        if have != sorted(wanted):
            raise ValueError(f"the gateway holds {have}, not {sorted(wanted)}")
        return True

    wait_until(seen, "the groups to be as they should")


@pytest.fixture
def other_job(tmp_path, segments, gateway, started):
    """The same job on another host, from the gateway's view: its agent has another directory."""
    directory = Path(tempfile.mkdtemp(dir=segments))
    logs = tmp_path / "other"
    logs.mkdir()
    return Job(logs, directory, gateway, started)


def test_an_agent_killed_and_started_again_under_a_new_address_ends_its_groups_and_no_others(job, other_job, gateway):
    other = other_job.agent("--ip-addr=10.0.0.9")
    other_job.worker(replica=7).tell("count my_app batches 3")
    agent = job.agent("--ip-addr=10.0.0.1", "--on-instance-end=keep")
    worker = job.worker()
    worker.tell("count my_app batches 11")
    others = [("rep_0", "agent", "10.0.0.9"), ("rep_7", "trainer", "10.0.0.9")]
    wait_for_keys(gateway, [*others, ("rep_0", "agent", "10.0.0.1"), ("rep_0", "trainer", "10.0.0.1")])
    agent.kill()
    agent = job.agent("--ip-addr=10.0.0.2", "--on-instance-end=keep")
    wait_for_keys(gateway, [*others, ("rep_0", "agent", "10.0.0.2"), ("rep_0", "trainer", "10.0.0.2")])
    assert gateway.metrics().one("my_app_batches", ip_addr="10.0.0.2") == 11
    gateway.wait_for("persia_agent_groups_deleted_total", 2, ip_addr="10.0.0.2")
    assert agent.metrics().one("persia_agent_groups") == 2
    assert other.metrics().one("persia_agent_groups_deleted_total") == 0


def test_the_group_of_a_worker_that_left_ends_also_when_the_agent_was_killed_meanwhile(job, gateway):
    flags = ("--ip-addr=10.0.0.1", "--gauge-ttl=1")
    agent = job.agent(*flags)
    workers = [job.worker(replica=replica) for replica in (1, 2)]
    for worker in workers:
        worker.tell("count my_app batches 11")
    stay = [("rep_0", "agent", "10.0.0.1"), ("rep_1", "trainer", "10.0.0.1")]
    wait_for_keys(gateway, [*stay, ("rep_2", "trainer", "10.0.0.1")])
    agent.kill()
    workers[1].leave()
    job.agent(*flags)
    wait_for_keys(gateway, stay)
    assert gateway.metrics().one("my_app_batches") == 11


def test_on_job_end_delete_ends_the_jobs_groups_and_no_others_when_the_command_has_ended(job, other_job, gateway):
    other_job.agent("--ip-addr=10.0.0.9")
    agent = job.exec_worker("--ip-addr=10.0.0.1", "--on-job-end=delete")
    agent.tell("count my_app batches 11")
    gateway.wait_for("my_app_batches", 11)
    assert agent.leave() == 0
    wait_for_keys(gateway, [("rep_0", "agent", "10.0.0.9")])
    assert "has no effect" not in agent.output()


def test_on_job_end_delete_when_run_has_been_idle_but_not_when_it_is_told_to_end(job, gateway):
    worker = job.worker()
    worker.tell("count my_app batches 11")
    flags = ("--ip-addr=10.0.0.1", "--on-job-end=delete")
    agent = job.agent(*flags)
    gateway.wait_for("my_app_batches", 11)
    agent.signal(signal.SIGTERM)
    assert agent.wait() == 0
    assert ("rep_0", "trainer", "10.0.0.1") in keys(gateway)
    agent = job.agent(*flags, "--exit-when-idle=0.2s")
    wait_until(lambda: agent.metrics().one("my_app_batches") == 11, "the agent to have read the worker")
    worker.leave()
    assert agent.wait() == 0
    wait_for_keys(gateway, [])


def test_of_two_agents_with_one_identity_the_second_adds_a_label_until_its_run_ends(job, other_job, gateway):
    def start(one):
        agent = one.agent("--ip-addr=10.0.0.1")
        wait_until(lambda: agent.metrics().one("persia_agent_build_info"), "the agent's page")
        return agent

    first, second = start(job), start(other_job)
    for one, by in ((job, 11), (other_job, 22)):
        one.worker().tell(f"count my_app batches {by}")
    assert "another agent of this host has the identity" in second.output() and 'role: "agent"' in second.output()
    assert "another agent" not in first.output()
    (label,) = re.findall(r'adds the label agent="([0-9a-f]{16})"', second.output())

    def values(metrics):
        return {dict(labels).get("agent", ""): value for (name, labels), value in metrics.items() if name == "my_app_batches"}

    wait_until(lambda: values(gateway.metrics()) == {"": 11, label: 22}, "both workers' counters on the gateway")
    assert values(first.metrics()) == {"": 11} and values(second.metrics()) == {label: 22}
    assert [one.metrics().one("persia_agent_identity_conflicts") for one in (first, second)] == [0, 1]
    # The first one's final values stay as they are, although its identity is free now.
    first.signal(signal.SIGTERM)
    first.wait()
    second.kill()
    second = start(other_job)
    wait_until(lambda: second.metrics().one("persia_agent_pushes_total", result="success") > 1, "pushes of the second agent's successor")
    assert values(second.metrics()) == {label: 22}
    assert values(gateway.metrics()) == {"": 11, label: 22}
