"""Alerts that fire for real: a job, its agent, a gateway, and Prometheus with the shipped rules, in seconds instead of minutes."""

import signal

from servers import wait_until
from shipped_prometheus import SHORT, ShippedPrometheus


def test_a_rank_that_hangs_gradients_that_are_nan_and_an_agent_that_is_gone(job, gateway, tmp_path, started):
    # The values of a job that ended well are on the gateway all the time.
    job.name = "over"
    over = job.exec_worker()
    over.tell("count_feat persia nan_count user_id 5")
    assert over.leave() == 0
    gateway.wait_for("persia_exec_running", 0, job="over")

    job.name = "under_way"
    agent = job.agent("--run-id=under_way", "--hang-after=3")
    ranks = [job.worker(replica=replica) for replica in (0, 1)]
    for rank in ranks:
        rank.tell("busy my_app steps")
    replace = {**SHORT, "metrics_gateway:9091": gateway.address, '["node_1:19091"]': "[]", "# - rules/optional/embeddings": "- rules/optional/embeddings"}
    prometheus = ShippedPrometheus(tmp_path, "static.yml", replace)
    started(prometheus)

    def wait_for(name, there=True):
        wait_until(lambda: ((name, "under_way") in prometheus.alerts()) == there, f"{name}: {there}; firing: {prometheus.alerts()}", 60)

    wait_until(lambda: len(prometheus.query('persia_process_up{job="under_way"} == 1')) == 2, "both ranks")
    ranks[1].tell("count_feat persia nan_count user_id 3")
    wait_for("PersiaNanGradients")
    assert ("PersiaRankHung", "under_way") not in prometheus.alerts()

    ranks[0].signal(signal.SIGSTOP)
    wait_for("PersiaRankHung")

    def hung():
        return [found["metric"]["instance"] for found in prometheus.query('ALERTS{alertname="PersiaRankHung", alertstate="firing"}')]

    assert wait_until(hung, "its series, which is written a moment later") == ["rep_0"], "the other one goes on"
    ranks[0].signal(signal.SIGCONT)
    wait_for("PersiaRankHung", there=False)

    ranks[0].kill()
    wait_for("PersiaRankDead")

    agent.kill()
    wait_for("PersiaJobVanished")
    wait_for("PersiaRankDead", there=False)  # the series are gone
    said = {name for name, of in prometheus.alerts() if of == "over"}
    assert said <= {"PersiaNanGradients"}, "new to this Prometheus when the job had just ended, and else nothing"
    wait_until(lambda: "over" not in {of for _, of in prometheus.alerts()}, "silence about the job that is over")
    for rank in ranks[1:]:
        rank.kill()
