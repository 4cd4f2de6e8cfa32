"""docker-compose.yml. One project serves all tests, in their order; each leaves it training."""

import json
import time
import urllib.parse

import pytest
from engine import docker, run
from job import JOB, NAMES, ROLES, CountedJob, groups
from servers import fetch, wait_until

WITH_HEALTH_CHECK = ["agent", "metrics_gateway", "prometheus", "middleware", "server", "server_1"]


def query(stack, expression):
    body = fetch(stack.url("prometheus", 9090) + "/api/v1/query?" + urllib.parse.urlencode({"query": expression}))[1]
    return json.loads(body)["data"]["result"]


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    return CountedJob(tmp_path_factory.mktemp("compose") / "reports")


@pytest.fixture(scope="module")
def stack(project, job):
    stack = project("docker-compose.yml", job.file())
    stack.up()
    job.wait_until_it_trains(stack)
    return stack


def test_every_service_is_healthy(stack):
    for service in WITH_HEALTH_CHECK:
        stack.container(service).wait_healthy()


def test_all_persia_metrics_arrive_in_prometheus(stack):
    def missing():
        seen = {each["metric"]["__name__"] for each in query(stack, f'{{job="{JOB}"}}')}
        return [name for name in NAMES if not seen & {name, name + "_count"}]

    wait_until(lambda: not missing(), "all metrics of the Persia tables in Prometheus", 60, interval=1)
    assert not query(stack, '{exported_job=~".+"}'), "Prometheus scrapes without honor_labels"


def test_the_agents_page_answers(stack):
    url = stack.url("agent", 19091)
    status, body = fetch(url + "/metrics")
    assert status == 200 and "\nindex_miss_count{" in body
    assert fetch(url + "/")[0] == 200


def test_services_are_confined(stack):
    for service, container in stack.containers().items():
        config = container.inspect()["HostConfig"]
        assert config["ReadonlyRootfs"] and config["CapDrop"] == ["ALL"] and not config["CapAdd"], service
        assert "no-new-privileges:true" in config["SecurityOpt"], service
        assert config["Memory"] > 0, service
        assert config["LogConfig"]["Config"]["max-file"] == "3", service
        status = dict(line.split(":\t", 1) for line in container.exec("cat", "/proc/self/status")[1].splitlines() if ":\t" in line)
        uid = "10001" if service in ROLES or service == "agent" else "65534"
        assert set(status["Uid"].split()) == {uid}, service
        assert {status[name] for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}, service
        assert status["NoNewPrivs"] == "1", service
        assert container.exec("touch", "/file", check=False)[0] != 0, service


def test_a_gateway_that_is_stopped_and_started_has_its_values(stack):
    agent, gateway = stack.container("agent"), stack.container("metrics_gateway")
    docker("pause", agent.id)
    before = groups(stack)
    gateway.stop()
    assert gateway.exit_code() == 0
    gateway.start()
    wait_until(lambda: groups(stack) == before, "the values of before on the gateway")
    docker("unpause", agent.id)


def test_a_killed_gateway_is_up_to_date_after_the_next_push(stack, job):
    gateway = stack.container("metrics_gateway")
    before = job.batches(stack)
    gateway.kill()
    gateway.start()
    wait_until(lambda: job.batches(stack) > before, "the next push")


def test_a_killed_agent_continues(stack, job):
    agent = stack.container("agent")
    agent.kill()
    agent.start()
    job.wait_until_it_trains(stack)


def kill(stack, job, service):
    starts = {name: stack.container(name).state()["StartedAt"] for name in ROLES}
    container = job.kill(stack, service)
    assert container.wait() == 137
    container.start()
    wait_until(lambda: all(stack.container(name).state()["StartedAt"] != starts[name] for name in ROLES), "all roles' restart", 60)
    job.wait_until_it_trains(stack)


@pytest.mark.parametrize("service", ["data_compose", "trainer", "middleware"])
def test_a_killed_role_ends_the_others_and_all_begin_again(stack, job, service):
    kill(stack, job, service)


def test_the_project_is_restarted(stack, job):
    stack.restart()
    job.wait_until_it_trains(stack)


# The engine restarts a service that failed three times; the restart above begins a new count.
@pytest.mark.parametrize("service", ["server", "server_1"])
def test_a_killed_role_after_a_restart(stack, job, service):
    kill(stack, job, service)


def test_down_ends_all_in_order_and_up_continues(stack, job):
    began = time.time()
    stack.down()
    words = ["docker", "events", f"--since={began:.3f}", f"--until={time.time():.3f}", "--filter=event=die", "--format={{json .Actor.Attributes}}"]
    ended = [json.loads(line) for line in run([*words, f"--filter=label=com.docker.compose.project={stack.name}"])[1].splitlines()]
    codes = {each["com.docker.compose.service"]: int(each["exitCode"]) for each in ended}
    assert set(codes) == {*stack.services()}
    assert set(codes.values()) == {0}, codes  # each ended before the engine would have killed it
    order = [each["com.docker.compose.service"] for each in ended]
    assert max(order.index(name) for name in ROLES) < order.index("agent") < order.index("metrics_gateway"), order
    stack.up()
    job.wait_until_it_trains(stack)


def test_no_count_is_lost_or_doubled(stack, job):
    docker("kill", "--signal=TERM", stack.container("data_compose").id)
    for service in ROLES:
        container = stack.container(service)
        assert container.wait() == 0, container.logs()
    job.wait_until_counts_agree(stack)
    keys = [(group["labels"]["role"], group["labels"]["instance"]) for group in groups(stack) if group["labels"].get("job") == JOB]
    assert len(keys) == len(set(keys)), "groups of an earlier address of the agent"
