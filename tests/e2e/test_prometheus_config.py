"""config/prometheus alone: valid, consistent, and each alert with its cases and its section in the runbook."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
import yaml
from servers import ROOT, find_program
from shipped_prometheus import CONFIG

import catalog

FILES = sorted(path.name for path in CONFIG.glob("*.yml") if path.name != "alertmanager.yml")
MAIN = ["alerts_job.yml", "alerts_agent.yml", "alerts_gpu.yml"]
OPTIONAL = ["optional/embeddings.yml", "optional/machine.yml", "optional/exporter.yml"]
RULES = {name: yaml.safe_load((CONFIG / "rules" / name).read_text()) for name in ["thresholds.yml", "recording.yml", *MAIN, *OPTIONAL]}


def rules_of(*files):
    return [rule for name in files for group in RULES[name]["groups"] for rule in group["rules"]]


ALERTS = [rule for rule in rules_of(*MAIN, *OPTIONAL) if "alert" in rule]
RECORDED = [rule["record"] for rule in rules_of(*RULES) if "record" in rule]
THRESHOLDS = {rule["record"]: rule["expr"] for rule in rules_of("thresholds.yml")}
RUNBOOKS = "{{ with $externalLabels.persia_runbooks }}{{ . }}{{ else }}https://runbooks.example/{{ end }}"
GRAFANA = "{{ with $externalLabels.persia_grafana }}{{ . }}{{ else }}http://localhost:3000/{{ end }}"
TIME = """{{ query "1000 * (time() %s)" | first | value | printf "%%.0f" }}"""
CASES = sorted((CONFIG / "tests").glob("*.yml"))


def promtool(*arguments):
    # Each case has a database: in memory that is much faster.
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        env = {**os.environ, "TMPDIR": directory}
        return subprocess.run([find_program("promtool"), *arguments], capture_output=True, text=True, timeout=500, env=env)


def scrapes(file):
    return {scrape["job_name"]: scrape for scrape in yaml.safe_load((CONFIG / file).read_text())["scrape_configs"]}


def test_every_way_to_deploy_has_its_file_and_its_row():
    assert FILES == ["dns_sd.yml", "dockerswarm_sd.yml", "file_sd.yml", "kubernetes_sd.yml", "prometheus.yml", "static.yml"]
    table = re.findall(r"^\| [^|]* \| `(\w+\.yml)`", (CONFIG / "README.md").read_text(), re.M)
    assert sorted(table) == FILES


@pytest.mark.parametrize("file", [file for file in FILES if file != "kubernetes_sd.yml"])
def test_file_is_accepted(file):
    result = promtool("check", "config", str(CONFIG / file))
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("rules found") == len(RULES) - len(OPTIONAL), "it loads the rules, and no optional ones"


@pytest.mark.parametrize("file", [file for file in FILES if file != "kubernetes_sd.yml"])
def test_file_loads_each_optional_file_on_demand(file, tmp_path):
    home = tmp_path / "prometheus"
    shutil.copytree(CONFIG, home)
    text = (home / file).read_text()
    assert re.findall(r"^  # - rules/(optional/\w+\.yml)", text, re.M) == OPTIONAL
    (home / file).write_text(text.replace("  # - rules/", "  - rules/"))
    result = promtool("check", "config", str(home / file))
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("rules found") == len(RULES)


def test_file_for_kubernetes_is_the_same_but_for_the_discovery(tmp_path):
    """Debian's Prometheus is built without Kubernetes: all else is checked with a static target in its place."""
    config = yaml.safe_load((CONFIG / "kubernetes_sd.yml").read_text())
    for scrape in config["scrape_configs"]:
        if scrape["job_name"] == "prometheus":
            continue
        what = {"persia_gateways": "gateway", "persia_agents": "agent"}[scrape["job_name"]]
        assert scrape.pop("kubernetes_sd_configs") == [{"role": "pod", "selectors": [{"role": "pod", "label": f"persia-metrics={what}"}]}]
        first = scrape["relabel_configs"][0]
        assert first == {"source_labels": ["__meta_kubernetes_pod_label_persia_metrics"], "regex": what, "action": "keep"}
        assert {"source_labels": ["__meta_kubernetes_pod_phase"], "regex": "Running", "action": "keep"} in scrape["relabel_configs"]
        known = {"label_persia_metrics", "phase", "ip", "annotation_persia_metrics_port", "name"}
        used = {label for rule in scrape["relabel_configs"] for label in rule["source_labels"]}
        assert used == {f"__meta_kubernetes_pod_{name}" for name in known} | {"__meta_kubernetes_namespace"}
        scrape["static_configs"] = [{"targets": ["localhost:9091"]}]
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump({**config, "rule_files": [str(CONFIG / "rules/*.yml")]}))
    result = promtool("check", "config", str(tmp_path / "prometheus.yml"))
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("file", FILES)
def test_labels_are_the_jobs_and_a_job_comes_by_one_path(file):
    jobs = scrapes(file)
    assert set(jobs) == {"prometheus", "persia_gateways"} | ({"persia_agents"} if file != "prometheus.yml" else set())
    path = {"source_labels": ["metrics_path"], "regex": "agent"}
    for name, action in (("persia_gateways", "drop"), ("persia_agents", "keep")):
        if name in jobs:
            assert jobs[name]["honor_labels"] is True
            assert jobs[name]["metric_relabel_configs"] == [{**path, "action": action}]


def test_rules_are_named_as_is_usual():
    for name in RECORDED:
        assert re.fullmatch(r"[a-z_]+:[a-z_]+:[a-z0-9_]+", name), name
    for alert in ALERTS:
        assert re.fullmatch(r"Persia([A-Z][a-z]+)+", alert["alert"]), alert["alert"]


def test_all_rules_are_in_files_that_are_checked_here():
    assert sorted(RULES) == sorted(str(path.relative_to(CONFIG / "rules")) for path in (CONFIG / "rules").rglob("*.yml"))


def test_thresholds_are_numbers_in_one_file():
    """An alert compares a share, a size or a number with a threshold; 0 and 1 are states."""
    assert len(THRESHOLDS) == len(rules_of("thresholds.yml")), "each has one series"
    for name, expression in THRESHOLDS.items():
        assert name.startswith("threshold:") and re.fullmatch(r"vector\([\d.]+\)", expression), name
    for alert in ALERTS:
        numbers = re.findall(r"[<>]=? *(?:bool )?([\d.]+)(?![\w.])", re.sub(r'"[^"]*"', "", alert["expr"]))
        assert set(numbers) <= {"0", "1", *ELSEWHERE.get(alert["alert"], [])}, f"{alert['alert']}: {numbers}"


# Numbers that follow from what is measured, and not from what a site wants.
ELSEWHERE = {
    "PersiaJobFailed": ["3600"],  # as long as the exit code is looked for
    "PersiaAgentPushFailing": ["300"],  # the gateway keeps the time of a failure for ever
    "PersiaGatewayOutOfReach": ["3600"],  # jobs that stopped within an hour
    "PersiaIdentityConflict": ["5"],  # restarts, which are no conflict
    "PersiaInfinibandLinkDown": ["4", "3"],  # states of a port
    "PersiaStaleGroupsPileUp": ["86400"],  # a day
    "PersiaNetworkRetransmits": ["10000"],  # a few segments are not a share
}


def test_every_recorded_series_is_used():
    texts = [rule["expr"] for rule in rules_of(*RULES)]
    assert [name for name in RECORDED if not any(re.search(rf"(?<![\w:]){name}(?![\w:])", text) for text in texts)] == []


def test_alerts_wait_for_the_recorded_series():
    """When Prometheus starts, the group of recording rules may be evaluated after those of the alerts."""
    assert {alert["for"] for alert in ALERTS} <= {"1m", "2m", "5m", "10m", "15m", "1h"}


def test_rules_ask_for_metrics_that_there_are():
    known = {entry.name for entry in catalog.entries()}
    for document in ("agent/METRICS.md", "docs/gpu.md"):
        known |= set(re.findall(r"^\| `(\w+)` \|", (ROOT / document).read_text(), re.M))
    known |= {rule["name"] for rule in yaml.safe_load((ROOT / "config/mapping.yaml").read_text())["mappings"] if "name" in rule}
    known |= {"push_time_seconds", "push_failure_time_seconds", "process_start_time_seconds", "up"}
    known |= {"persia_phase_step"}  # of the library, phase.h
    known |= {"ALERTS", "ALERTS_FOR_STATE", "prometheus_sd_discovered_targets", "scrape_samples_post_metric_relabeling"}
    words = {"unless", "and", "or", "on", "ignoring", "by", "without", "offset", "sum", "min", "max", "avg", "count", "increase", "rate", "time", "resets"}
    words |= {"avg_over_time", "min_over_time", "max_over_time", "last_over_time", "quantile_over_time"}
    words |= {"bool", "clamp", "clamp_min", "group_left", "group_right", "quantile", "topk", "label_replace", "timestamp", "scalar", "vector", "absent"}
    for rule in rules_of(*RULES):
        # without selectors' labels, the labels that are grouped by, ranges, and recorded series
        text = re.sub(r'\{[^}]*\}|\[[\w:]+\]|(on|ignoring|by|without|group_left|group_right) \([^)]*\)|\b\w+(:\w+)+|"[^"]*"|\b\d[\w.]*', " ", rule["expr"])
        for name in set(re.findall(r"[a-zA-Z_]\w*", text)) - words:
            assert {name, re.sub("_(sum|count|bucket)$", "", name)} & known, f"{rule}: {name}"


def test_every_alert_has_what_a_mixin_has():
    assert len(rules_of(*MAIN)) <= 30, "more are not read"
    assert len({alert["alert"] for alert in ALERTS}) == len(ALERTS)
    assert {alert["labels"].get("team", "platform") for alert in ALERTS} == {"platform"}, "else the team of the series"
    for alert in ALERTS:
        assert alert["labels"]["severity"] in {"critical", "warning", "info"}
        assert set(alert["annotations"]) == {"summary", "description", "runbook_url", "dashboard_url"}
        assert all(text.endswith(".") for key, text in alert["annotations"].items() if not key.endswith("_url"))


def test_what_is_critical_of_a_job_stays_so_while_its_gateway_is_away():
    """Each alert finds itself; tests/outage.yml plays it."""
    critical = [alert for alert in rules_of("alerts_job.yml") if alert["labels"]["severity"] == "critical"]
    blocks = {re.sub(r"Persia\w+", "NAME", alert["expr"].partition("or ignoring (alertname, severity)")[2]) for alert in critical}
    assert len(critical) >= 6 and len(blocks) == 1 and "".join(blocks)
    assert all(f'ALERTS_FOR_STATE{{alertname="{alert["alert"]}"}}' in alert["expr"] for alert in critical)


def test_every_alert_links_to_a_board_for_its_job_and_time():
    boards = {path.stem for path in (ROOT / "dashboards").glob("*.json")}
    when = re.escape(f'from={TIME % "- 10800"}&to={TIME % "+ 1800"}')
    job, instance = (r"var-%s=\{\{ \$labels\.%s \| urlquery \}\}&" % names for names in (("job", "(?:exported_)?job"), ("instance", "instance")))
    url = re.escape(GRAFANA) + rf"d/([\w-]+)\?({job})?({instance})?" + when
    for alert in ALERTS:
        found = re.fullmatch(url, alert["annotations"]["dashboard_url"])
        assert found and found[1] in boards, alert
        has_job = re.search(r"labels\.(exported_)?job", alert["annotations"]["summary"])
        assert bool(found[2]) == bool(has_job), alert["alert"]
        assert bool(found[3]) == (found[1] == "persia-rank"), alert["alert"]
    of_rank = {alert["alert"] for alert in ALERTS if "d/persia-rank?" in alert["annotations"]["dashboard_url"]}
    # The board of the job compares the ranks: the one that the others wait for, or that is slower than they are.
    assert of_rank == {"PersiaRankDead", "PersiaRankHung", "PersiaWorkerRestarting"}


def test_every_runbook_section_is_there_and_no_other():
    headings = re.findall(r"^### (Persia\w+)$", (CONFIG / "README.md").read_text(), re.M)
    anchors = [f"{RUNBOOKS}config/prometheus/README.md#{heading.lower()}" for heading in headings]
    assert [alert["annotations"]["runbook_url"] for alert in ALERTS] == anchors, "in the order of the alerts"
    assert headings == [alert["alert"] for alert in ALERTS]


def test_the_two_addresses_are_external_labels(tmp_path):
    """Those of the README, in a case of each alert that is known to fire; and prometheus-rule.sh sets the same addresses."""
    (block,) = (yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", (CONFIG / "README.md").read_text(), re.S) if "persia_runbooks" in text)
    labels = block["global"]["external_labels"]
    shutil.copytree(CONFIG / "rules", tmp_path / "rules")
    text = (CONFIG / "tests/job.yml").read_text().replace("../rules", "rules")
    text = text.replace("https://runbooks.example/", labels["persia_runbooks"]).replace("http://localhost:3000/", labels["persia_grafana"])
    cases = yaml.safe_load(text)
    for case in cases["tests"]:
        case["external_labels"] = labels
    (tmp_path / "job.yml").write_text(yaml.safe_dump(cases))
    result = promtool("test", "rules", str(tmp_path / "job.yml"))
    assert result.returncode == 0, result.stdout + result.stderr
    (rule,) = block["alerting"]["alert_relabel_configs"]
    assert rule["action"] == "labeldrop" and all(re.fullmatch(rule["regex"], name) for name in labels)

    env = {**os.environ, "PERSIA_RUNBOOKS": labels["persia_runbooks"].rstrip("/"), "PERSIA_GRAFANA": labels["persia_grafana"]}
    script = ROOT / "config/kubernetes/prometheus-rule.sh"
    printed = subprocess.run([script, *(Path(name).stem for name in OPTIONAL)], env=env, capture_output=True, text=True, timeout=10, check=True).stdout
    found = [rule for group in yaml.safe_load(printed)["spec"]["groups"] for rule in group["rules"] if "alert" in rule]
    assert len(found) == len(ALERTS)
    for rule in found:
        assert f"{{{{ else }}}}{labels['persia_runbooks']}{{{{ end }}}}config/" in rule["annotations"]["runbook_url"]
        assert f"{{{{ else }}}}{labels['persia_grafana']}{{{{ end }}}}d/" in rule["annotations"]["dashboard_url"]


def test_every_alert_has_cases_in_which_it_fires_does_not_fire_and_ends():
    fires, does_not_fire, ends = set(), set(), set()
    for file in CASES:
        for case in yaml.safe_load(file.read_text())["tests"]:
            fired_here = set()
            for check in case.get("alert_rule_test", []):
                name = check["alertname"]
                if check.get("exp_alerts"):
                    fires.add(name)
                    fired_here.add(name)
                elif f"{name} does not fire" in case["name"]:
                    does_not_fire.add(name)
                elif name in fired_here:
                    ends.add(name)
    assert fires == does_not_fire == ends == {alert["alert"] for alert in ALERTS}


def test_an_alert_has_the_team_of_its_job(tmp_path):
    """In the shortest case in which it fires, with the label on all series. The platform's alerts are its own."""
    of_teams = {alert["alert"] for alert in ALERTS if "team" not in alert["labels"]}
    shortest = {}
    for file in CASES:
        for case in yaml.safe_load(file.read_text())["tests"]:
            for check in case.get("alert_rule_test", []):
                name = check["alertname"]
                if name not in of_teams or not check.get("exp_alerts"):
                    continue
                if name not in shortest or len(case["input_series"]) < len(shortest[name][0]["input_series"]):
                    shortest[name] = case, check
    assert set(shortest) == of_teams
    cases = []
    for case, check in shortest.values():
        series = [{**each, "series": each["series"].replace("}", ', team="vision"}')} for each in case["input_series"]]
        alerts = [{**each, "exp_labels": {**each["exp_labels"], "team": "vision"}} for each in check["exp_alerts"]]
        cases.append({"name": check["alertname"], "interval": case["interval"], "input_series": series, "alert_rule_test": [{**check, "exp_alerts": alerts}]})
    groups = [group["name"] for rules in RULES.values() for group in rules["groups"]]
    content = {"rule_files": [str(CONFIG / "rules" / name) for name in RULES], "evaluation_interval": "30s", "group_eval_order": groups, "tests": cases}
    (tmp_path / "team.yml").write_text(yaml.safe_dump(content, width=1000000))
    result = promtool("test", "rules", str(tmp_path / "team.yml"))
    assert result.returncode == 0, result.stdout + result.stderr


def test_nothing_is_told_of_a_job_that_ended_well():
    (case,) = yaml.safe_load((CONFIG / "tests/finished.yml").read_text())["tests"]
    asked = [check["alertname"] for check in case["alert_rule_test"] if not check.get("exp_alerts")]
    assert sorted(asked) == sorted(3 * [alert["alert"] for alert in ALERTS])


@pytest.mark.parametrize("file", CASES, ids=lambda path: path.name)
def test_cases_come_out_as_they_should(file):
    result = promtool("test", "rules", str(file))
    assert result.returncode == 0, result.stdout + result.stderr
