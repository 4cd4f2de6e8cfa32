"""The example for Alertmanager: its routes, by amtool, and what a real Alertmanager sends of alerts that follow from each other."""

import datetime
import json
import subprocess
import urllib.request

import pytest
import yaml
from alertmanager import CONFIG, Alertmanager, Messages
from servers import ROOT, find_program, wait_until

RULES = ROOT / "config/prometheus/rules"


def _alerts(path):
    return [rule for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"] if "alert" in rule]


ALERTS = {rule["alert"]: rule["labels"] for path in RULES.rglob("*.yml") for rule in _alerts(path)}
RECEIVERS = {"critical": "pager", "warning": "chat", "info": "chat"}
# Those with the label `path` of the rules.
BY_GATEWAY = {"PersiaGatewayOutOfReach", "PersiaJobVanished", "PersiaAgentPushFailing"}
GATEWAY = [("PersiaGatewayOutOfReach", "persia_gateways"), ("PersiaJobVanished", "dlrm"), ("PersiaJobVanished", "wide"), ("PersiaAgentPushFailing", "dlrm")]


def amtool(*arguments):
    return subprocess.run([find_program("amtool"), *arguments], capture_output=True, text=True, timeout=60)


@pytest.fixture
def messages():
    server = Messages()
    yield server
    server.stop()


def receivers(**labels):
    result = amtool("config", "routes", "test", f"--config.file={CONFIG}", *(f"{name}={value}" for name, value in labels.items()))
    return result.stdout.split()


@pytest.mark.parametrize("alert", ALERTS)
def test_each_alert_goes_where_its_severity_and_its_team_say(alert):
    labels = ALERTS[alert]
    receiver = RECEIVERS[labels["severity"]]
    assert receivers(job="dlrm", alertname=alert, **labels) == [receiver]
    mine = receivers(job="dlrm", alertname=alert, **{"team": "vision", **labels})
    assert mine == [receiver if labels["severity"] == "info" or "team" in labels else f"vision_{receiver}"]
    assert receivers(job="dlrm", alertname=alert, **{"team": "has_no_route", **labels}) == [receiver]


def test_an_exit_code_of_a_users_program_is_no_page():
    assert receivers(alertname="PersiaJobFailed", team="vision", **ALERTS["PersiaJobFailed"]) == ["vision_chat"]


def test_what_only_informs_is_of_the_files_that_are_loaded_on_demand():
    of_optional = {rule["alert"] for path in RULES.glob("optional/*.yml") for rule in _alerts(path)}
    assert {name for name, labels in ALERTS.items() if labels["severity"] == "info"} < of_optional


def test_other_alerts_of_the_site_are_not_lost():
    assert receivers(alertname="DiskFull", severity="critical", team="vision") == ["chat"]


def test_inhibition_names_only_alerts_that_there_are():
    for rule in yaml.safe_load(CONFIG.read_text())["inhibit_rules"]:
        matchers = rule["source_matchers"] + rule["target_matchers"]
        reasons = [matcher for matcher in matchers if matcher.startswith("reason=")]
        assert reasons in ([], ['reason="behind"'])
        for matcher in set(matchers) - set(reasons):
            names = matcher.partition("=")[2].lstrip("~").strip('"')
            words = names.replace("(", " ").replace(")", " ").replace("|", " ").replace("Persia", " ").split()
            assert words and all(any(word.replace(".+", "") in alert for alert in ALERTS) for word in words), words


@pytest.mark.needs("namespaces")
@pytest.mark.parametrize(
    "fire, wanted",
    [
        pytest.param(GATEWAY, GATEWAY[:1], id="one page if no agent reaches a gateway"),
        pytest.param(
            [("PersiaGatewayOutOfReach", "persia_gateways"), ("PersiaJobVanished", "dlrm"), ("PersiaJobVanished", "written")],
            [("PersiaGatewayOutOfReach", "persia_gateways"), ("PersiaJobVanished", "written")],
            id="a job that needs no gateway",
        ),
        pytest.param(
            [("PersiaGatewayDown", "persia_gateways"), ("PersiaJobVanished", "dlrm")],
            [("PersiaGatewayDown", "persia_gateways"), ("PersiaJobVanished", "dlrm")],
            id="one gateway of several is down, and a job of another one vanishes",
        ),
        pytest.param(
            [("PersiaJobFailed", "dlrm"), ("PersiaRankDead", "dlrm"), ("PersiaRankHung", "dlrm"), ("PersiaCheckpointOld", "dlrm"), ("PersiaRankDead", "wide")],
            [("PersiaJobFailed", "dlrm"), ("PersiaRankDead", "wide")],
            id="a failed job",
        ),
        pytest.param(
            [("PersiaJobFailed", "dlrm", {"team": "nlp"}), ("PersiaRankDead", "dlrm", {"team": "nlp"}), ("PersiaJobHung", "dlrm", {"team": "cv"})],
            [("PersiaJobFailed", "dlrm"), ("PersiaJobHung", "dlrm")],
            id="jobs of two teams with one name",
        ),
        pytest.param(
            [("PersiaJobVanished", "dlrm", {"team": "cv"}), ("PersiaAgentPushFailing", "dlrm"), ("PersiaRemoteWriteFailing", "dlrm", {"reason": "behind"})],
            [("PersiaJobVanished", "dlrm")],
            id="alerts of the platform that follow from one of a team",
        ),
        pytest.param(
            [("PersiaJobVanished", "dlrm"), ("PersiaRankHung", "dlrm"), ("PersiaCheckpointOld", "dlrm"), ("PersiaAgentVanished", "wide")],
            [("PersiaJobVanished", "dlrm"), ("PersiaAgentVanished", "wide")],
            id="a job that vanished",
        ),
        pytest.param(
            [("PersiaRankDead", "dlrm"), ("PersiaRankHung", "dlrm"), ("PersiaJobHung", "dlrm"), ("PersiaThroughputDropped", "dlrm")],
            [("PersiaRankDead", "dlrm")],
            id="a dead rank",
        ),
        pytest.param(
            [("PersiaJobHung", "dlrm"), ("PersiaRankHung", "dlrm"), ("PersiaGpuIdle", "dlrm"), ("PersiaMetricsLost", "dlrm"), ("PersiaRankHung", "wide")],
            [("PersiaJobHung", "dlrm"), ("PersiaMetricsLost", "dlrm"), ("PersiaRankHung", "wide")],
            id="a hung job",
        ),
        pytest.param(
            [("PersiaRankAwaited", "dlrm"), ("PersiaGoodputLow", "dlrm"), ("PersiaGpuIdle", "dlrm"), ("PersiaGpuIdle", "wide")],
            [("PersiaRankAwaited", "dlrm"), ("PersiaGpuIdle", "wide")],
            id="a rank that the others wait for",
        ),
        pytest.param(
            [("PersiaStraggler", "dlrm"), ("PersiaGoodputLow", "dlrm"), ("PersiaGaugeNan", "dlrm"), ("PersiaGoodputLow", "wide")],
            [("PersiaStraggler", "dlrm"), ("PersiaGaugeNan", "dlrm"), ("PersiaGoodputLow", "wide")],
            id="a slow rank",
        ),
        pytest.param(
            [("PersiaJobFailed", "dlrm"), ("PersiaRemoteWriteFailing", "dlrm", {"reason": "behind"}), ("PersiaRemoteWriteFailing", "wide", {"reason": "behind"})],
            [("PersiaJobFailed", "dlrm"), ("PersiaRemoteWriteFailing", "wide")],
            id="the last samples of a failed job",
        ),
        pytest.param(
            [("PersiaJobFailed", "dlrm"), ("PersiaRemoteWriteFailing", "dlrm", {"reason": "samples_lost"})],
            [("PersiaJobFailed", "dlrm"), ("PersiaRemoteWriteFailing", "dlrm")],
            id="samples of a failed job that are lost",
        ),
        pytest.param(
            [("PersiaGpuXidFatal", "dlrm"), ("PersiaGpuEccErrors", "dlrm"), ("PersiaGpuThrottled", "dlrm"), ("PersiaGpuThrottled", "wide")],
            [("PersiaGpuXidFatal", "dlrm"), ("PersiaGpuThrottled", "wide")],
            id="a device that has failed",
        ),
    ],
)
def test_what_follows_from_another_alert_is_not_sent(fire, wanted, messages, tmp_path, started):
    server = Alertmanager(tmp_path, messages)
    started(server)
    now = datetime.datetime.now(datetime.timezone.utc).isoformat()
    # The last one is sent by no inhibition: when it has arrived, all others have been decided, too.
    def labels(name, job, more=None):
        path = {"path": "gateway"} if name in BY_GATEWAY and job != "written" else {}
        return {"alertname": name, **(more or {}), **ALERTS[name], **path, "job": job}

    alerts = [{"labels": labels(*each), "startsAt": now} for each in fire]
    last = {"alertname": "PersiaConfigReloadFailed", "severity": "warning"}
    alerts += [{"labels": {**last, "job": job}, "startsAt": now} for job in {each[1] for each in fire}]
    body = json.dumps(alerts).encode()
    request = urllib.request.Request(f"{server.url}/api/v2/alerts", body, {"Content-Type": "application/json"})
    assert urllib.request.urlopen(request, timeout=10).status == 200

    def arrived():
        sent = messages.sent("pager") + messages.sent("chat")
        return set(wanted) | {("PersiaConfigReloadFailed", each[1]) for each in fire} <= set(sent) and sent

    sent = wait_until(arrived, "the messages")
    assert sorted(alert for alert in sent if alert[0] != "PersiaConfigReloadFailed") == sorted(wanted)
