"""A day of jobs, in seconds instead of hours: real agents and ranks that end, fail, hang, die, return and vanish, a PushGateway, a Prometheus
with the shipped rules, and Alertmanager. The pages that are sent are those that are wanted, and no others."""

import signal

import pytest
from alertmanager import Alertmanager, Messages
from conftest import Job
from servers import wait_until
from shipped_prometheus import SHORT, ShippedPrometheus

pytestmark = pytest.mark.needs("namespaces")

# In the order of the day.
PAGES = [
    ("PersiaRankHung", "hanging"),
    ("PersiaRankDead", "dying"),
    ("PersiaJobVanished", "vanishing"),
    ("PersiaJobVanished", "written_too"),
    ("PersiaGatewayDown", "persia_gateways"),
]
# To the team of the job, since its program has failed.
FAILED = [("PersiaJobFailed", "failing"), ("PersiaJobFailed", "aborted"), ("PersiaJobFailed", "written")]


class Day:
    """The servers, and the jobs by name."""

    def __init__(self, tmp_path, segments, gateway, started, messages):
        self.directory, self.segments, self.gateway, self.started, self.messages = tmp_path, segments, gateway, started, messages
        alertmanager = Alertmanager(tmp_path, messages)
        started(alertmanager)
        replace = {**SHORT, "metrics_gateway:9091": gateway.address, '["node_1:19091"]': "[]"}
        flags = ["--web.enable-remote-write-receiver"]
        self.prometheus = ShippedPrometheus(tmp_path, "static.yml", replace, alertmanager.address, flags)
        started(self.prometheus)

    def job(self, folder, name=None):
        for place in (self.directory, self.segments):
            (place / folder).mkdir(mode=0o700)
        job = Job(self.directory / folder, self.segments / folder, self.gateway, self.started)
        job.name = name or folder
        return job

    def ranks(self, job, count=2):
        ranks = [job.worker(replica=replica) for replica in range(count)]
        for rank in ranks:
            rank.tell("busy my_app steps")
        self.shown(f'count(persia_process_up{{job="{job.name}"}} == 1) == {count}')
        return ranks

    def shown(self, expression):
        """Waits until Prometheus has a result."""
        return wait_until(lambda: self.prometheus.query(expression), expression, 60)

    def paged(self, alert, job, status="firing", receiver="pager"):
        wait_until(lambda: (alert, job) in self.messages.sent(receiver, status), f"{alert} {job} {status}: {self.messages.sent(receiver, status)}", 60)

    def told(self, alert, job):
        self.paged(alert, job, receiver="vision_chat")


@pytest.fixture
def messages():
    server = Messages()
    yield server
    server.stop()


def test_the_pages_of_a_day_are_those_that_are_wanted(tmp_path, segments, gateway, started, messages):
    day = Day(tmp_path, segments, gateway, started, messages)

    # Ends well.
    calm = day.job("calm").exec_worker("--hang-after=3")
    calm.tell("busy my_app steps")
    day.shown('persia_exec_running{job="calm"} == 1')
    assert calm.leave() == 0

    # Only rank 0 logs; the other one has declared the metric.
    logging = day.job("logging")
    logging.agent("--hang-after=3")
    day.ranks(logging, 1)
    logging.worker(replica=1).tell("count my_app steps 0")
    day.shown('count(persia_process_hung{job="logging"} == 0) == 2')

    # Its agent is killed and started again. Later its pod is replaced by one with another address, and a directory of its own.
    moving = day.job("moving")
    first = moving.agent("--ip-addr=10.0.0.1")
    (rank,) = day.ranks(moving, 1)
    first.kill()
    again = moving.agent("--ip-addr=10.0.0.1")
    day.shown('changes(persia_agent_config_last_reload_success_timestamp_seconds{job="moving"}[1m]) > 0')
    again.kill()
    rank.kill()
    day.shown('time() - push_time_seconds{job="moving", role="agent"} > 2')
    moved = day.job("moving_on", name="moving")
    moved.agent("--ip-addr=10.0.0.2")
    moved.worker().tell("busy my_app steps")
    day.shown('agent:replaced:bool{job="moving", ip_addr="10.0.0.1"}')

    # Fails.
    failing = day.job("failing").exec_worker("--label=team=vision")
    failing.tell("busy my_app steps")
    failing.popen.stdin.write("exit 3\n")
    failing.popen.stdin.flush()
    assert failing.wait() == 3
    day.told("PersiaJobFailed", "failing")

    # All of its ranks fail, without exec.
    aborted = day.job("aborted")
    aborted.agent("--label=team=vision")
    (rank,) = day.ranks(aborted, 1)
    rank.popen.stdin.write("exit 4\n")
    rank.popen.stdin.flush()
    assert rank.wait() == 4
    day.told("PersiaJobFailed", "aborted")

    # A rank hangs, and goes on.
    hanging = day.job("hanging")
    hanging.agent("--hang-after=3")
    ranks = day.ranks(hanging)
    day.shown('count(changes(persia_process_last_change_timestamp_seconds{job="hanging"}[1m]) > 3) == 2')  # else they are not judged
    ranks[0].signal(signal.SIGSTOP)
    day.paged("PersiaRankHung", "hanging")
    ranks[0].signal(signal.SIGCONT)
    day.paged("PersiaRankHung", "hanging", "resolved")

    # A rank dies, and another one takes its place.
    dying = day.job("dying")
    dying.agent()
    ranks = day.ranks(dying)
    ranks[1].kill()
    day.paged("PersiaRankDead", "dying")
    dying.worker(replica=1).tell("busy my_app steps")
    day.paged("PersiaRankDead", "dying", "resolved")

    # The agent is killed, and returns much later.
    vanishing = day.job("vanishing")
    agent = vanishing.agent()
    day.ranks(vanishing)
    agent.kill()
    day.paged("PersiaJobVanished", "vanishing")
    vanishing.agent()
    day.paged("PersiaJobVanished", "vanishing", "resolved")

    # Without a gateway: a job that ends well, one that fails, one that vanishes.
    write = ["--gateway=", f"--remote-write={day.prometheus.url}/api/v1/write", "--on-job-end=delete"]
    well = day.job("written_well").exec_worker(*write)
    well.tell("busy my_app steps")
    day.shown('persia_exec_running{job="written_well"} == 1')
    assert well.leave() == 0
    written = day.job("written").exec_worker("--label=team=vision", *write)
    written.tell("busy my_app steps")
    day.shown('persia_exec_running{job="written"} == 1')
    written.popen.stdin.write("exit 3\n")
    written.popen.stdin.flush()
    assert written.wait() == 3
    day.told("PersiaJobFailed", "written")
    too = day.job("written_too")
    agent = too.agent(*write)
    day.ranks(too, 1)
    agent.kill()
    day.paged("PersiaJobVanished", "written_too")

    # The gateway is down: one page for all jobs.
    gateway.kill()
    day.paged("PersiaGatewayDown", "persia_gateways")
    gateway.start()
    day.paged("PersiaGatewayDown", "persia_gateways", "resolved")

    assert messages.sent("pager") == PAGES
    assert [sent for sent in messages.sent("vision_chat") if sent[0] == "PersiaJobFailed"] == FAILED
