"""A metric that contradicts another is dropped; all others are exported."""


def test_two_workers_that_give_one_name_two_types(job, gateway):
    agent = job.agent()
    older = job.worker()
    older.tell("count my_app size 3")
    older.tell("count my_app batches 1")
    gateway.wait_for("my_app_size", 3)
    newer = job.worker(replica=1)  # created after the first definition
    newer.tell("set my_app size 0.5")
    newer.tell("count my_app batches 2")
    gateway.wait_for("my_app_size", 0.5)
    gateway.wait_for("my_app_batches", 1, instance="rep_0")
    gateway.wait_for("my_app_batches", 2, instance="rep_1")
    gateway.wait_for("persia_agent_quarantined_series", 1, reason="definition")
    lines = [line for line in agent.output().splitlines() if "my_app, size" in line]
    assert len(lines) == 1 and "is left out as a counter" in lines[0], agent.output()

    newer.kill()
    older.tell("count my_app batches 10")
    gateway.wait_for("my_app_batches", 11, instance="rep_0")
    assert gateway.metrics().one("my_app_size") == 0.5, "the newest definition stays the newest when its process ends"
