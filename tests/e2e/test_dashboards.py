"""The dashboards: generated from the catalog, and valid by the rules of dashboard_rules.py."""

import copy
import json
import re
import sys

import dashboard_rules
import pytest
import yaml
from servers import ROOT

import catalog

sys.path.insert(0, str(ROOT / "dashboards"))
import generate  # noqa: E402
from boards.promql import unless_ended  # noqa: E402

pytestmark = pytest.mark.static

FOLDER = ROOT / "dashboards"
BOARDS = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
ENTRIES = catalog.entries()
PROVISIONING = ROOT / "config/grafana/provisioning"


@pytest.mark.parametrize("rule", dashboard_rules.RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("uid", BOARDS)
def test_board(uid, rule):
    assert list(rule(BOARDS[uid])) == []


def test_the_files_are_what_the_generator_writes():
    assert {path.name: path.read_text() for path in FOLDER.glob("*.json")} == {
        path.name: content for path, content in generate.files().items()
    }


def test_files_are_named_by_their_uids():
    assert {uid: board["uid"] for uid, board in BOARDS.items()} == {uid: uid for uid in BOARDS}
    assert set(BOARDS) == {"persia-training", "persia-elastic", "persia-benchmark", "persia-exporter"}


def test_links_lead_to_boards():
    assert list(dashboard_rules.broken_links(BOARDS)) == []


# --- each rule finds its problem


def first(board, kind):
    return next(panel for panel in board["panels"] if panel["type"] == kind)


def set_expression(expression):
    def act(board):
        first(board, "timeseries")["targets"][0]["expr"] = expression

    return act


def set_stat(expression, title=None):
    def act(board):
        panel = next(panel for panel in board["panels"] if panel["type"] == "stat" and title in (None, panel["title"]))
        panel["targets"][0]["expr"] = expression

    return act


def change(path, value):
    """A change that sets the value at a path of keys, in the board or in its first panel of a type."""

    def act(board):
        *way, last = path
        place = first(board, way.pop(0)[1:]) if way and str(way[0]).startswith("@") else board
        for key in way:
            place = place[key]
        if value is None:
            del place[last]
        else:
            place[last] = value

    return act


def empty_text(board):
    board["panels"][-1]["options"]["content"] = "see elsewhere"


FILTER = 'job=~"$job", instance=~"$instance"'
DAMAGES = [
    ("has_a_variable_for_its_data_source", change(["templating", "list", 0, "label"], "Source")),
    ("has_variables_for_job_and_instance", change(["templating", "list", 2, "multi"], False)),
    ("reloads_variables_when_the_time_changes", change(["templating", "list", 1, "refresh"], 1)),
    ("asks_for_variables_by_label_values", change(["templating", "list", 2, "query", "query"], "label_values(up{}, instance)")),
    ("uses_its_data_source_variable_everywhere", change(["@timeseries", "datasource", "uid"], "Prometheus")),
    ("uses_its_data_source_variable_everywhere", change(["@stat", "targets", 0, "datasource"], None)),
    ("has_titles_and_descriptions", change(["@heatmap", "description"], "")),
    ("has_titles_and_descriptions", change(["@stat", "title"], None)),
    ("has_units", change(["@stat", "fieldConfig", "defaults", "unit"], "parsecs")),
    ("has_targets", change(["@stat", "targets"], None)),
    ("filters_by_job", set_expression('max by (job) (staleness{instance=~"$instance"})')),
    ("filters_by_job", set_expression("max by (job) (staleness)")),
    ("filters_by_job", set_expression(f"time() - staleness{{{FILTER}}} + on (job) push_time_seconds offset 5m")),
    ("filters_by_instance", set_expression('max by (job) (staleness{job=~"$job", instance="$instance"})')),
    ("takes_rates_over_the_rate_interval", set_expression(f"sum by (job) (rate(persia_events_total{{{FILTER}}}[5m]))")),
    ("shows_counters_as_rates", set_expression(f"sum by (job) (persia_events_total{{{FILTER}}})")),
    ("shows_counters_as_rates", set_expression(f"sum by (job) (deriv(nan_count{{{FILTER}}}[$__rate_interval]))")),
    ("cannot_be_edited", change(["editable"], True)),
    ("has_a_fixed_uid_and_no_id", change(["uid"], "persia-" + "x" * 40)),
    ("has_a_fixed_uid_and_no_id", change(["id"], 7)),
    ("has_the_tag", change(["tags"], ["training"])),
    ("can_be_provisioned", change(["@text", "datasource", "uid"], "${DS_PROMETHEUS}")),
    ("goes_from_general_to_special", lambda board: board["panels"].reverse()),
    ("goes_from_general_to_special", change(["panels", 1, "type"], "timeseries")),
    ("has_thresholds_that_rise", change(["@stat", "fieldConfig", "defaults", "thresholds"], {"steps": [{"value": 1}]})),
    ("names_its_source", empty_text),
    ("names_its_source", change(["description"], "Numbers")),
    ("fits_phones_and_walls", change(["@stat", "gridPos", "w"], 3)),
    ("fits_phones_and_walls", change(["@stat", "gridPos", "w"], 5)),
    ("fits_phones_and_walls", change(["@row", "collapsed"], True)),
    ("fits_phones_and_walls", change(["@timeseries", "options", "legend", "placement"], "right")),
    ("tells_jobs_apart", change(["@timeseries", "targets", 0, "legendFormat"], "{{instance}}")),
    ("tells_jobs_apart", change(["@timeseries", "targets", 0, "legendFormat"], "{{job}} {{host}}")),
    ("gives_each_target_a_legend_of_its_own", lambda board: first(board, "stat")["targets"].append(first(board, "stat")["targets"][0])),
    ("gives_panels_and_targets_ids_of_their_own", change(["panels", 1, "id"], 1)),
    ("uses_variables_that_exist", set_expression(f'staleness{{{FILTER}, role="$role"}}')),
    ("uses_variables_that_exist", change(["@timeseries", "repeat"], "role")),
    ("marks_events", change(["annotations", "list", 1, "enable"], True)),
    ("has_variables_for_job_and_instance", change(["templating", "list", 1, "includeAll"], True)),
    ("is_not_red_by_default", change(["@stat", "fieldConfig", "defaults", "thresholds"], {"steps": [{"value": None, "color": "red"}]})),
    ("warns_of_no_job_that_has_ended", set_stat(f"max by (job) (time() - push_time_seconds{{{FILTER}}})")),
    ("warns_of_no_job_that_has_ended", set_stat(f"max by (job) (staleness{{{FILTER}}})", "Staleness")),
    ("warns_of_no_job_that_has_ended", set_stat(unless_ended("staleness or nan_count").replace("(staleness or nan_count)", "staleness or nan_count"), "Staleness")),
]


@pytest.mark.parametrize("name, damage", DAMAGES, ids=[f"{name}-{number}" for number, (name, _) in enumerate(DAMAGES)])
def test_a_rule_finds_what_it_is_there_for(name, damage):
    board = copy.deepcopy(BOARDS["persia-training"])
    damage(board)
    (rule,) = [rule for rule in dashboard_rules.RULES if rule.__name__ == name]
    assert list(rule(board))


def test_each_rule_is_tried():
    assert {name for name, _ in DAMAGES} == {rule.__name__ for rule in dashboard_rules.RULES}


@pytest.mark.parametrize("damage", [change(["links"], []), change(["links", 0, "url"], "/d/other"), change(["links", 0, "keepTime"], False)])
def test_broken_links_are_found(damage):
    boards = copy.deepcopy(BOARDS)
    damage(boards["persia-elastic"])
    assert list(dashboard_rules.broken_links(boards))


# --- the tables are charted as the catalog says


def charted(pattern):
    """Panels of the training board with a target that matches, without those of the overview."""
    return [
        (panel, target)
        for panel, target in dashboard_rules.targets(BOARDS["persia-training"])
        if re.search(pattern, target["expr"]) and panel["type"] != "stat"
    ]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_a_metric_of_the_tables_is_charted_by_what_it_means(entry):
    if entry.type == "counter":
        ((panel, target),) = charted(rf"rate\({entry.name}{{")
        assert panel["fieldConfig"]["defaults"]["unit"] == "cps"
    elif entry.type == "gauge":
        ((panel, target),) = charted(rf"\b{entry.name}{{")
        assert panel["fieldConfig"]["defaults"]["unit"] == {"ratio": "percentunit", "": "short"}[entry.unit]
    else:
        of_all = charted(rf"\b{entry.name}_(bucket|sum|count){{")
        panel, target = of_all[0]
        assert {panel["fieldConfig"]["defaults"]["unit"] for panel, _ in of_all} == {"s"} and entry.unit == "seconds"
        shown = {target["legendFormat"].removeprefix("{{job}} ") for other, target in of_all if other is panel}
        assert shown == {"mean", "p50", "p95", "p99"}
        assert ("heatmap" in {panel["type"] for panel, _ in of_all}) == entry.name.startswith("lookup_")
        assert charted(rf"\b{entry.name}_sec{{")
    assert panel["description"].startswith(entry.help)
    assert ("{{%s}}" % entry.label in target["legendFormat"]) == bool(entry.label)
    assert not charted(rf"(?<!rate\()\b{entry.name}{{") or entry.type == "gauge"


def test_the_tables_stand_in_rows_of_their_own():
    row, rows = None, {}
    for panel in BOARDS["persia-training"]["panels"]:
        row = panel["title"] if panel["type"] == "row" else row
        rows.setdefault(row, []).append(json.dumps(panel))
    for entry in ENTRIES:
        assert any(entry.name in panel for panel in rows[f"{entry.table.capitalize()} related"])


def test_staleness_and_pending_batches_have_thresholds():
    for name in ("staleness", "num_pending_batches"):
        ((panel, _),) = charted(rf"\b{name}{{")
        assert len(panel["fieldConfig"]["defaults"]["thresholds"]["steps"]) > 1
        assert panel["fieldConfig"]["defaults"]["custom"]["thresholdsStyle"]["mode"] == "dashed"


def test_each_metric_of_the_agent_is_on_a_board():
    families = re.findall(r"^\| `(persia_\w+)` \|", (ROOT / "agent/METRICS.md").read_text(), re.M)
    asked = " ".join(expression for board in BOARDS.values() for _, expression in dashboard_rules.expressions(board))
    missing = [name for name in families if not re.search(rf"\b{name}(_bucket|_sum)?{{", asked)]
    assert len(families) > 40 and missing == []


# --- provisioning


def test_grafana_finds_prometheus():
    (source,) = yaml.safe_load((PROVISIONING / "datasources/prometheus.yaml").read_text())["datasources"]
    assert (source["name"], source["type"], source["uid"]) == ("Prometheus", "prometheus", "prometheus")
    push = yaml.safe_load((ROOT / "config/global_config.yaml").read_text())["PersiaMetricsConfig"]["push_interval_seconds"]
    scrapes = [yaml.safe_load(path.read_text())["global"]["scrape_interval"] for path in (ROOT / "config/prometheus").glob("*.yml") if path.name != "alertmanager.yml"]
    slowest = max([float(push), *(float(text.removesuffix("s")) for text in scrapes)])
    assert float(source["jsonData"]["timeInterval"].removesuffix("s")) == slowest


def test_grafana_finds_the_boards():
    (provider,) = yaml.safe_load((PROVISIONING / "dashboards/persia.yaml").read_text())["providers"]
    assert provider["type"] == "file" and provider["options"]["path"] == "/var/lib/grafana/dashboards"
    assert provider["allowUiUpdates"] is False
