"""Several gateways: each group belongs to one of them, and a gateway that is down affects only its own groups."""

import json
import re
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from conftest import PYTHON, GatewayHandle
from needs import in_namespaces
from servers import fetch, wait_until

RANKS = range(16)


@pytest.fixture
def gateways(tmp_path):
    """Three gateways, requested before the job, so that they end after its agents' last push."""
    handles = []
    for number in range(3):
        directory = tmp_path / f"gateway-{number}"
        directory.mkdir()
        handles.append(GatewayHandle(directory))
    yield handles
    for handle in handles:
        handle.server.stop()


def addresses(gateways):
    return ",".join(handle.address for handle in gateways)


def batches(handle):
    """A gateway's values of the ranks, by instance."""
    return {dict(labels)["instance"]: value for (name, labels), value in handle.metrics().items() if name == "my_app_batches"}


def all_batches(gateways):
    shown = [pair for handle in gateways for pair in batches(handle).items()]
    assert len(dict(shown)) == len(shown), f"a group on two gateways: {sorted(shown)}"
    return dict(shown)


def start(job, gateways, *flags):
    agent = job.agent(f"--gateway={addresses(gateways)}", "--connect-timeout=0.5", *flags)
    workers = [job.worker(replica=rank) for rank in RANKS]
    for worker in workers:
        worker.tell("count my_app batches 1")
    wait_until(lambda: all_batches(gateways) == {f"rep_{rank}": 1 for rank in RANKS}, "each rank on one gateway")
    return agent, workers


def shares(gateways):
    return [set(batches(handle)) for handle in gateways]


def one_with_groups(gateways):
    """The gateway with the fewest ranks, and the others."""
    with_groups = sorted((handle for handle in gateways if batches(handle)), key=lambda handle: len(batches(handle)))
    assert len(with_groups) >= 2, "sixteen ranks all belong to one of the gateways"
    return with_groups[0], [handle for handle in gateways if handle is not with_groups[0]]


def failures(agent, handle):
    return agent.metrics().one("persia_agent_push_consecutive_failures", gateway=handle.address)


def status(agent):
    return json.loads(fetch(agent.url + "/api/v1/status")[1])


def test_a_gateway_that_dies_costs_its_groups_only_and_comes_back_fresh(gateways, job):
    agent, workers = start(job, gateways, "--push-timeout=1")
    lost, others = one_with_groups(gateways)
    its_ranks = set(batches(lost))
    before = shares(others)
    lost.kill()
    for worker in workers:
        worker.tell("count my_app batches 1")
    rest = {f"rep_{rank}" for rank in RANKS} - its_ranks
    wait_until(lambda: all_batches(others) == {rank: 2 for rank in rest}, "the other groups to go on")
    wait_until(lambda: failures(agent, lost) > 0, "the failures to be counted")
    assert shares(others) == before, "no group goes to another gateway"

    def told():
        seen = status(agent)
        of = {one["address"]: one for one in seen["gateways"]}
        its = "refused" in of[lost.address]["last_error"] == seen["gateway"]["last_error"] and of[lost.address]["failed"] > 0
        return its and all(of[handle.address]["last_error"] == "" for handle in others)

    wait_until(told, "the errors of the lost one alone")
    wait_until(lambda: all(failures(agent, handle) == 0 for handle in others), "no failures of the others")
    lost.start()
    wait_until(lambda: batches(lost) == {rank: 2 for rank in its_ranks}, "its groups to be there again")
    wait_until(lambda: failures(agent, lost) == 0, "the failures to be over")
    assert shares(others) == before


def test_a_gateway_that_does_not_answer_holds_up_no_other(gateways, job):
    agent, workers = start(job, gateways, "--push-timeout=60")
    stuck, others = one_with_groups(gateways)
    its_ranks = set(batches(stuck))
    stuck.server.signal(signal.SIGSTOP)
    try:
        for value in (2, 3):
            for worker in workers:
                worker.tell("count my_app batches 1")
            rest = {f"rep_{rank}": value for rank in RANKS if f"rep_{rank}" not in its_ranks}
            wait_until(lambda rest=rest: all_batches(others) == rest, "the other groups to go on")
        assert agent.running()
    finally:
        stuck.server.signal(signal.SIGCONT)
    wait_until(lambda: batches(stuck) == {rank: 3 for rank in its_ranks}, "its groups to go on")


def test_groups_move_with_the_list_and_end_where_they_were(gateways, job, tmp_path):
    config = tmp_path / "config.yaml"

    def write(*used):
        config.write_text("PersiaMetricsConfig:\n  gateway_address:\n" + "".join(f"    - {handle.address}\n" for handle in used))

    write(gateways[0])
    usual = job.flags
    job.flags = lambda address, more: [flag for flag in usual(address, more) if not flag.startswith("--gateway=")]
    agent = job.agent(f"--config={config}")
    for rank in RANKS:
        job.worker(replica=rank).tell("count my_app batches 1")
    everything = {f"rep_{rank}": 1 for rank in RANKS}
    wait_until(lambda: batches(gateways[0]) == everything, "the only gateway to have all")

    def settled(used):
        """Queries each gateway once: a group that moves is on two of them for a moment."""
        shown = [batches(handle) for handle in used]
        once = sum(map(len, shown)) == len(RANKS) and {rank: one[rank] for one in shown for rank in one} == everything
        return shown if once and sum(map(bool, shown)) >= 2 else None

    write(*gateways)
    agent.signal(signal.SIGHUP)
    spread = wait_until(lambda: settled(gateways), "the groups to be spread, and ended where they were")
    write(gateways[1], gateways[2])
    agent.signal(signal.SIGHUP)
    wait_until(lambda: not gateways[0].groups(), "the gateway that left the list to be empty")
    after = wait_until(lambda: settled(gateways[1:]), "its groups to be on the others")
    assert spread[1].keys() <= after[0].keys() and spread[2].keys() <= after[1].keys(), "what was there stayed"


def test_the_jobs_end_reaches_all_that_the_variable_names(gateways, job):
    usual = job.flags
    job.flags = lambda address, more: [flag for flag in usual(address, more) if not flag.startswith("--gateway=")]
    agent = job.exec_worker("--on-job-end=delete", env={"PERSIA_METRICS_GATEWAY_ADDR": addresses(gateways)})
    wait_until(lambda: sum(len(handle.groups()) for handle in gateways) >= 2, "the worker's group and the agent's")
    beside = [job.worker(replica=rank) for rank in (1, 2, 3, 4)]
    wait_until(lambda: sum(len(handle.groups()) for handle in gateways) >= 6, "the others' groups")
    for worker in beside:
        worker.leave()
    assert agent.leave() == 0
    wait_until(lambda: [handle.groups() for handle in gateways] == [[], [], []], "the groups to be gone")
    assert "the job has ended; its groups" in agent.output()


def seen_in(world):
    """What a script saw in namespaces of its own."""
    script = Path(__file__).with_name(world)
    with tempfile.TemporaryDirectory(prefix="persia-names-", dir="/dev/shm") as directory:
        done = subprocess.run(in_namespaces(PYTHON, script, directory), capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.needs("namespaces")
def test_a_name_stands_for_all_of_its_addresses_and_follows_them():
    seen = seen_in("gateway_names_world.py")
    first, second, third = "127.0.0.2", "127.0.0.3", "[::1]"
    assert seen["without_a_name"] == 0
    assert seen["two"][third] == 0 and seen["two"][first] > 0 and seen["two"][second] > 0
    assert all(0 < count for count in seen["three"].values())
    assert seen["three"][first] <= seen["two"][first] and seen["three"][second] <= seen["two"][second], "only the new one gained"
    assert seen["without_the_first"][first] == 0
    assert all(seen["without_the_first"][one] >= seen["three"][one] for one in (second, third)), "only the one that left lost"
    assert seen["without_a_server"] == seen["without_the_first"]
    assert seen["of_a_short_job"] == 1, "the agent's own group, whichever gateway has it"
    assert seen["failures"] > 1
    assert 'cannot look up "gateways": ' in seen["log"] and "its last known addresses stay" in seen["log"]


@pytest.mark.needs("namespaces")
def test_without_a_setting_there_is_a_gateway_once_the_defaults_name_is_known():
    seen = seen_in("default_gateway_world.py")
    for log in (seen["short_job"], seen["log"]):
        assert log.count("no gateway: gateway_address is not set") == 1, log
        assert not re.search("warn|error", log, re.IGNORECASE), log
    assert seen["status"] == {"state": "running", "delivery": None, "gateway": "off"}
    assert "no gateway" not in seen["short_job_with_it"]
    assert seen["jobs"] == ["long", "with"]
