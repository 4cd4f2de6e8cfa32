"""Gateways that are restarted or come late become complete."""

from servers import wait_until

# A push to a gateway that is down ends before the test does.
GIVES_UP_SOON = "--push-timeout=0.5"


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
