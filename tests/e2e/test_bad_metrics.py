"""A metric that contradicts another is dropped, and all others are exported; values that are lost are told."""

import json

from conftest import PYTHON, PYTHON_PACKAGE
from servers import fetch, wait_until


def told(agent):
    health = json.loads(fetch(f"http://{agent.address}/api/v1/status")[1])["health"]
    return health["text"], [reason["text"] for reason in health["reasons"] if reason["kind"] == "lost"]


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

    left_out = "my_app/size (my_app_size) left out on trainer rep_0: it is a counter there, and the newest my_app_size is a gauge; "
    assert told(agent)[1] == [left_out + "give it one type, or another name"]

    newer.kill()
    older.tell("count my_app batches 10")
    gateway.wait_for("my_app_batches", 11, instance="rep_0")
    assert gateway.metrics().one("my_app_size") == 0.5, "the newest definition stays the newest when its process ends"


LOSES = """
import os, sys, time
from persia_metrics import Counter, Gauge, Histogram
loss = Counter("train", "loss", "A loss that is no counter.")
for value in (1.5, float("nan"), -1, -2):
    loss.inc(value)
Gauge("train", "loss").set(2)
Histogram("train", "seconds").observe(float("nan"))
Counter("", "").inc()
while os.path.exists(sys.argv[1]):
    time.sleep(0.05)
"""
BAD_VALUE = "a counter takes no NaN and no negative number, a histogram no NaN; a gauge takes both"
LOST = [
    f"3 values of train/loss lost on trainer rep_0: {BAD_VALUE}",
    f"1 value of train/seconds lost on trainer rep_0: {BAD_VALUE}",
    "1 request for train/loss refused on trainer rep_0: its process has it with another type, merge policy or bounds; give it one, or another name",
    "1 request refused on trainer rep_0: a name has 1 to 256 bytes, a label's value at most 4096, and a metric at most 32 labels, each once; correct the call",
]


def test_lost_values_are_named_on_the_page_and_at_the_end_of_the_log(job):
    script, goes_on = job.directory / "loses.py", job.directory / "goes_on"
    script.write_text(LOSES)
    goes_on.touch()
    agent = job.exec(PYTHON, script, goes_on, env={"PERSIA_ROLE": "trainer", "PYTHONPATH": str(PYTHON_PACKAGE)})
    wait_until(lambda: told(agent)[1] == LOST, "the lost values on the page")
    assert told(agent)[0] in ("all workers are well", "1 of 1 rank starting")
    assert agent.metrics().one("persia_metrics_lost_total", metric="train/loss", reason="bad_value") == 3
    for kind in ("counter takes no NaN", "histogram takes no NaN"):
        assert f"loses values: a {kind}" in agent.output()
    assert 'metric "loss" of group "train" (train_loss) is a counter, and was requested again as a gauge' in agent.output()
    goes_on.unlink()
    assert agent.wait() == 0
    assert [line.split(" warning: ")[1] for line in agent.output().splitlines() if " lost on " in line or " refused on " in line] == LOST


def test_the_next_agent_knows_the_lost_values_of_ended_processes(job):
    goes_on = job.directory / "goes_on"
    goes_on.touch()
    agent = job.agent()
    worker = job.python(LOSES.replace("sys.argv[1]", repr(str(goes_on))))
    wait_until(lambda: told(agent)[1] == LOST, "the lost values on the page")
    goes_on.unlink()
    assert worker.wait() == 0
    wait_until(lambda: agent.metrics().one("persia_agent_retired_processes_total") == 1, "the end of the process")
    agent.kill()
    following = job.agent()
    wait_until(lambda: told(following)[1] == LOST, "the same from the next agent")
