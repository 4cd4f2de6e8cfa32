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
ALERTS = {
    rule["alert"]: rule["labels"]["severity"]
    for path in RULES.glob("alerts_*.yml")
    for group in yaml.safe_load(path.read_text())["groups"]
    for rule in group["rules"]
}
RECEIVERS = {"critical": "pager", "warning": "chat", "info": "nobody"}
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


@pytest.mark.parametrize("alert, severity", ALERTS.items())
def test_each_alert_goes_where_its_severity_says(alert, severity):
    result = amtool("config", "routes", "test", f"--config.file={CONFIG}", f"alertname={alert}", f"severity={severity}", "job=dlrm")
    assert result.stdout.split() == [RECEIVERS[severity]]


def test_other_alerts_of_the_site_are_not_lost():
    result = amtool("config", "routes", "test", f"--config.file={CONFIG}", "alertname=DiskFull", "severity=critical")
    assert result.stdout.split() == ["chat"]


def test_inhibition_names_only_alerts_that_there_are():
    for rule in yaml.safe_load(CONFIG.read_text())["inhibit_rules"]:
        for matcher in rule["source_matchers"] + rule["target_matchers"]:
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
            [("PersiaJobHung", "dlrm"), ("PersiaRankHung", "dlrm"), ("PersiaSegmentNearlyFull", "dlrm")],
            [("PersiaJobHung", "dlrm"), ("PersiaSegmentNearlyFull", "dlrm")],
            id="a hung job",
        ),
        pytest.param(
            [("PersiaHostHung", "dlrm"), ("PersiaRankHung", "dlrm"), ("PersiaThroughputDropped", "dlrm"), ("PersiaRankHung", "wide")],
            [("PersiaHostHung", "dlrm"), ("PersiaRankHung", "wide")],
            id="a hung host",
        ),
    ],
)
def test_what_follows_from_another_alert_is_not_sent(fire, wanted, messages, tmp_path, started):
    server = Alertmanager(tmp_path, messages)
    started(server)
    now = datetime.datetime.now(datetime.timezone.utc).isoformat()
    # The last one is sent by no inhibition: when it has arrived, all others have been decided, too.
    def labels(name, job):
        path = {"path": "gateway"} if name in BY_GATEWAY and job != "written" else {}
        return {"alertname": name, "severity": ALERTS[name], **path, "job": job}

    alerts = [{"labels": labels(name, job), "startsAt": now} for name, job in fire]
    last = {"alertname": "PersiaConfigReloadFailed", "severity": "warning"}
    alerts += [{"labels": {**last, "job": job}, "startsAt": now} for job in {job for _, job in fire}]
    body = json.dumps(alerts).encode()
    request = urllib.request.Request(f"{server.url}/api/v2/alerts", body, {"Content-Type": "application/json"})
    assert urllib.request.urlopen(request, timeout=10).status == 200

    def arrived():
        sent = messages.sent("pager") + messages.sent("chat")
        return set(wanted) | {("PersiaConfigReloadFailed", job) for _, job in fire} <= set(sent) and sent

    sent = wait_until(arrived, "the messages")
    assert sorted(alert for alert in sent if alert[0] != "PersiaConfigReloadFailed") == sorted(wanted)
