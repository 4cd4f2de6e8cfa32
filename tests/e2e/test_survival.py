"""Killed processes leave their last values, and restarted gateways become complete again."""

import signal

from servers import wait_until

# A push to a gateway that is down ends before the test does.
GIVES_UP_SOON = "--push-timeout=0.5"


def test_last_values_of_a_killed_worker_arrive(job, gateway):
    job.agent()
    worker = job.worker()
    worker.tell("count my_app batches 41")
    gateway.wait_for("my_app_batches", 41)
    worker.tell("count my_app batches 1")
    worker.tell("set my_app loss 0.25")
    worker.tell("observe persia lookup_rpc_time_cost 0.5")
    worker.kill()
    gateway.wait_for("my_app_batches", 42, role="trainer", instance="rep_0")
    gateway.wait_for("my_app_loss", 0.25)
    gateway.wait_for("lookup_rpc_time_cost_count", 1)
    gateway.wait_for("lookup_rpc_time_cost_sec", 0.5)


def test_killed_worker_and_its_successor_add_up(job, gateway):
    job.agent()
    first = job.worker()
    first.tell("count my_app batches 10")
    first.kill()
    second = job.worker()
    second.tell("count my_app batches 5")
    gateway.wait_for("my_app_batches", 15)


def test_restarted_gateway_is_complete_after_the_next_push(job, gateway):
    agent = job.agent(GIVES_UP_SOON)
    trainer, server = job.worker("trainer"), job.worker("embedding_server", replica=1)
    trainer.tell("count my_app batches 7")
    server.tell("count persia index_miss_count 9")
    gateway.wait_for("my_app_batches", 7)
    gateway.wait_for("index_miss_count", 9)
    before = {key for key in gateway.metrics() if key[0] in ("my_app_batches", "index_miss_count")}

    gateway.kill()
    trainer.tell("count my_app batches 1")
    wait_until(lambda: "did not arrive" in agent.output(), "the agent's line on the lost gateway")
    gateway.start()

    gateway.wait_for("my_app_batches", 8)
    gateway.wait_for("index_miss_count", 9)
    assert {key for key in gateway.metrics() if key[0] in ("my_app_batches", "index_miss_count")} == before


def test_gateway_that_comes_late_gets_everything(job, gateway):
    gateway.kill()
    agent = job.agent(GIVES_UP_SOON)
    worker = job.worker()
    worker.tell("count my_app batches 3")
    wait_until(lambda: agent.metrics().one("my_app_batches") == 3, "the agent to have read the worker")
    gateway.start()
    gateway.wait_for("my_app_batches", 3)


def test_lost_gateway_is_one_line_in_the_log(job, gateway):
    agent = job.agent("--push-timeout=2")  # one that lives has time to answer
    worker = job.worker()
    worker.tell("count my_app batches 1")
    gateway.wait_for("my_app_batches", 1)
    gateway.kill()

    def failures():
        pushes = [(dict(labels)["result"], value) for (name, labels), value in agent.metrics().items() if name == "persia_agent_pushes_total"]
        return sum(value for result, value in pushes if result != "success")

    wait_until(lambda: failures() >= 3, "three failed pushes")
    lines = [line for line in agent.output().splitlines() if f"cannot push to {gateway.address}" in line]
    assert len(lines) == 1, agent.output()


def test_stopped_worker_keeps_its_values_exported(job, gateway):
    job.agent()
    worker = job.worker()
    worker.tell("count my_app batches 2")
    worker.signal(signal.SIGSTOP)
    try:
        gateway.wait_for("my_app_batches", 2)
    finally:
        worker.signal(signal.SIGCONT)
