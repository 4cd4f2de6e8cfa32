"""The dashboards: generated from the catalog, and valid by the rules of dashboard_rules.py."""

import copy
import json
import os
import re
import subprocess
import sys

import dashboard_rules
import many_ranks
import pytest
import yaml
from servers import ROOT, find_program

import catalog

sys.path.insert(0, str(ROOT / "dashboards"))
import generate  # noqa: E402
import picture  # noqa: E402
from boards import jobs  # noqa: E402
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
    ways = ["fleet", "job", "rank", "machine", "gpu", "elastic", "training", "benchmark", "exporter"]
    assert set(BOARDS) == {f"persia-{name}" for name in ways}


def test_links_lead_to_boards():
    assert list(dashboard_rules.broken_links(BOARDS)) == []


def test_no_panel_is_on_two_boards():
    assert list(dashboard_rules.shown_twice(BOARDS)) == []


def test_one_leads_from_all_jobs_to_a_job_to_a_rank():
    ways = {uid: " ".join(url for panel in board["panels"] for urls in dashboard_rules.links_in(panel) for url in urls) for uid, board in BOARDS.items()}
    assert "/d/persia-job?var-job=${__data.fields.job}&" in ways["persia-fleet"]
    assert "/d/persia-rank?${job:queryparam}&var-instance=${__data.fields.instance}&" in ways["persia-job"]
    assert all(f"/d/persia-{name}?" in ways["persia-job"] for name in ("rank", "machine", "gpu"))


def test_the_fleet_has_a_line_for_each_job():
    (panel,) = [panel for panel in BOARDS["persia-fleet"]["panels"] if panel["type"] == "table"]
    columns = panel["transformations"][1]["options"]["renameByName"].values()
    assert {"state", "step", "speed", "goodput", "GPU hours", "last alert"} <= set(columns)
    owners = [target["expr"] for target in panel["targets"] if "owner" in target["expr"]]
    assert len(owners) == 1 and '"owner", "$1", "team"' in owners[0] and "persia_job_info{" in owners[0]
    labels = {label for target in panel["targets"] for label in dashboard_rules.grouping(target["expr"])}
    assert labels == {"job", "owner"}


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


FILTER, HIGHEST = 'job=~"$job", instance=~"$instance"', "Highest staleness"
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
    ("names_lines_by_what_tells_them_apart", change(["@timeseries", "targets", 0, "legendFormat"], "{{instance}}")),
    ("names_lines_by_what_tells_them_apart", change(["@timeseries", "targets", 0, "legendFormat"], "{{role}} {{instance}} {{host}}")),
    ("names_lines_by_what_tells_them_apart", change(["@timeseries", "targets", 0, "legendFormat"], "{{job}} {{role}} {{instance}}")),
    ("names_lines_by_what_tells_them_apart", change(["@stat", "targets", 0, "legendFormat"], "")),
    ("names_lines_by_what_tells_them_apart", set_expression(f"max by (job, host) (staleness{{{FILTER}}})")),
    ("names_lines_by_what_tells_them_apart", change(["@row", "repeat"], None)),
    ("repeats_rows_by_job", change(["@row", "repeat"], None)),
    ("repeats_rows_by_job", change(["@row", "title"], "Overview")),
    ("repeats_rows_by_job", change(["uid"], "persia-exporter")),
    ("has_few_lines", set_expression(f"max by (job, instance, role) (staleness{{{FILTER}}})")),
    ("has_few_lines", set_expression(f"staleness{{{FILTER}}}")),
    ("has_few_lines", set_expression(f"topk by (job, instance) (8, max by (job, instance) (staleness{{{FILTER}}}))")),
    ("has_few_panels", change(["uid"], "persia-job")),
    ("lists_jobs_and_ranks_by_one_metric", change(["templating", "list", 1, "query", "query"], "label_values(persia_process_up, job)")),
    ("lists_jobs_and_ranks_by_one_metric", change(["templating", "list", 2, "query", "query"], 'label_values(persia_agent_series{job=~"$job"}, instance)')),
    ("gives_each_target_a_legend_of_its_own", lambda board: first(board, "stat")["targets"].append(first(board, "stat")["targets"][0])),
    ("gives_panels_and_targets_ids_of_their_own", change(["panels", 1, "id"], 1)),
    ("uses_variables_that_exist", set_expression(f'staleness{{{FILTER}, role="$role"}}')),
    ("uses_variables_that_exist", change(["@timeseries", "repeat"], "role")),
    ("marks_events", change(["annotations", "list", 1, "enable"], True)),
    ("has_variables_for_job_and_instance", change(["templating", "list", 1, "includeAll"], True)),
    ("is_not_red_by_default", change(["@stat", "fieldConfig", "defaults", "thresholds"], {"steps": [{"value": None, "color": "red"}]})),
    ("warns_of_no_job_that_has_ended", set_stat(f"max by (job) (time() - push_time_seconds{{{FILTER}}})")),
    ("warns_of_no_job_that_has_ended", set_stat(f"max by (job) (staleness{{{FILTER}}})", HIGHEST)),
    ("warns_of_no_job_that_has_ended", set_stat(unless_ended("staleness or nan_count").replace("(staleness or nan_count)", "staleness or nan_count"), HIGHEST)),
]


@pytest.mark.parametrize("name, damage", DAMAGES, ids=[f"{name}-{number}" for number, (name, _) in enumerate(DAMAGES)])
def test_a_rule_finds_what_it_is_there_for(name, damage):
    board = copy.deepcopy(BOARDS["persia-training"])
    damage(board)
    (rule,) = [rule for rule in dashboard_rules.RULES if rule.__name__ == name]
    assert list(rule(board))


def test_each_rule_is_tried():
    assert {name for name, _ in DAMAGES} == {rule.__name__ for rule in dashboard_rules.RULES}


def change_cell(url):
    """A change of the address to which the cells of a table lead."""

    def act(board):
        (given,) = [given for way in first(board, "table")["fieldConfig"]["overrides"] for given in way["properties"] if given["id"] == "links"]
        given["value"][0]["url"] = url

    return act


@pytest.mark.parametrize(
    "damage",
    [
        change(["links"], []),
        change(["links", 0, "url"], "/d/other"),
        change(["links", 0, "keepTime"], False),
        change(["@timeseries", "links", 0, "url"], "/d/persia-rank?${job:queryparam}"),
        change(["@text", "options", "content"], "[Jobs](/d/persia-fleet)"),
        change_cell("/d/other?${job:queryparam}&${__url_time_range}"),
        change_cell("/d/persia-rank?${__url_time_range}"),
        change_cell("/d/persia-rank?${job:queryparam}"),
    ],
)
def test_broken_links_are_found(damage):
    boards = copy.deepcopy(BOARDS)
    damage(boards["persia-job"])
    assert list(dashboard_rules.broken_links(boards))


def copy_of(uid):
    return lambda board: board["panels"].append(copy.deepcopy(first(BOARDS[uid], "timeseries")))


@pytest.mark.parametrize("damage", [copy_of("persia-rank"), copy_of("persia-job"), change(["@stat", "title"], first(BOARDS["persia-gpu"], "stat")["title"])])
def test_a_panel_that_is_there_twice_is_found(damage):
    boards = copy.deepcopy(BOARDS)
    damage(boards["persia-job"])
    assert list(dashboard_rules.shown_twice(boards))


# --- the queries


def known_metrics():
    """Of the documents, the catalog, the bundled rules, the headers of phases and progress, the recording rules, the gateway and Prometheus."""
    known = {name for entry in ENTRIES for name in (entry.name, entry.name + "_sec")}
    for document in ("agent/METRICS.md", "docs/gpu.md"):
        known |= set(re.findall(r"^\| `(\w+)` \|", (ROOT / document).read_text(), re.M))
    for header in ("phase.h", "progress.h"):
        known |= set(re.findall(r"`(persia_\w+)", (ROOT / "lib/include/persia/metrics" / header).read_text()))
    known |= {rule["record"] for rule in yaml.safe_load((ROOT / "config/prometheus/rules/recording.yml").read_text())["groups"][0]["rules"]}
    return known | {"push_time_seconds", "push_failure_time_seconds", "ALERTS", "ALERTS_FOR_STATE"}


def test_each_metric_of_a_board_is_described():
    names = [re.sub(r"\$\{\w+\}", r"\\w+", rule["name"]) for rule in yaml.safe_load((ROOT / "config/mapping.yaml").read_text())["mappings"] if "name" in rule]
    of_rules = re.compile("|".join(names))
    known = known_metrics()
    asked = {re.sub("_(sum|count|bucket)$", "", name) if name not in known else name for name in dashboard_rules.metrics(BOARDS)}
    assert len(asked) > 100
    # The catalog's counters are named like parts of a histogram.
    assert sorted(name for name in asked if name not in known and not of_rules.fullmatch(name)) == []


def filled(expression, **values):
    # The test of promtool allows a query 10,000 samples.
    times = {"__rate_interval": "1m", "__interval": "1m", "__interval_ms": "60000", "__range": "1m"}
    return picture.fill_in(expression, {**times, **values})


def promtool(*arguments):
    env = {**os.environ, "TMPDIR": "/dev/shm"}
    return subprocess.run([find_program("promtool"), *arguments], capture_output=True, text=True, timeout=300, env=env)


def test_each_query_is_promql(tmp_path):
    """By Prometheus's own parser."""
    asked = {f"{uid}: {name}": filled(expr) for uid, board in BOARDS.items() for name, expr in dashboard_rules.expressions(board)}
    rules = [{"record": "query", "expr": expr, "labels": {"query": name}} for name, expr in asked.items()]
    (tmp_path / "queries.yml").write_text(yaml.safe_dump({"groups": [{"name": "boards", "rules": rules}]}))
    result = promtool("check", "rules", "--lint=none", str(tmp_path / "queries.yml"))
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{len(rules)} rules found" in result.stdout and len(rules) > 300
    (tmp_path / "queries.yml").write_text(yaml.safe_dump({"groups": [{"name": "boards", "rules": [{"record": "query", "expr": "sum by (job (up)"}]}]}))
    assert promtool("check", "rules", "--lint=none", str(tmp_path / "queries.yml")).returncode != 0


MOST_LINES = {"timeseries": 24, "state-timeline": 24, "table": 40}
MAY_BE_LONG = {"persia-rank", "persia-benchmark"}  # they show the ranks and the names that are chosen


@pytest.mark.parametrize("uid", [uid for uid in BOARDS if uid not in MAY_BE_LONG])
def test_a_board_shows_a_job_of_256_ranks_in_few_lines(uid, tmp_path):
    """Each query has series of such a job, and not many."""
    asked = [(panel, target["expr"]) for panel, target in dashboard_rules.targets(BOARDS[uid])]
    checks = []
    for panel, expr in asked:
        ways = [filled(expr, own_metric=name) for name in many_ranks.OWN_FAMILIES] if "own_metric" in expr else [filled(expr)]
        most = MOST_LINES.get(panel["type"], 10)
        if panel["type"] == "table" and uid == "persia-exporter":
            most = 2 * many_ranks.RANKS  # what runs where, by agent and rank
        lines = " + ".join(f"(count({way}) or vector(0))" for way in ways)
        checks.append({"expr": f"ceil(({lines}) / {most})", "eval_time": "3m", "exp_samples": [{"labels": "{}", "value": 1}]})
    names = dashboard_rules.metrics({uid: BOARDS[uid]})
    rules = list(many_ranks.rules(names, [expr for _, expr in asked]))
    assert {rule["record"] for rule in rules} >= names
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "job", "interval": "30s", "rules": rules}]}))  # JSON is YAML, too
    test = {"interval": "30s", "input_series": list(many_ranks.input_series(6)), "promql_expr_test": checks}
    case = {"rule_files": ["rules.yml"], "evaluation_interval": "30s", "tests": [test]}
    (tmp_path / "case.yml").write_text(json.dumps(case))
    result = promtool("test", "rules", str(tmp_path / "case.yml"))
    assert result.returncode == 0, (result.stdout + result.stderr)[:4000]


# What makes each state: series of a job with the values that they have at the end.
RUNS = {"persia_exec_running": 1, 'persia_agent_segments{state="live"}': 4}
OVER = {"persia_exec_running": 0, 'persia_agent_segments{state="live"}': 0, "persia_process_died": 1}
CASES_OF_STATES = {
    "running": [RUNS, {'persia_agent_segments{state="live"}': 1}, {**RUNS, 'persia_agent_segments{state="live"}': 0}],
    "straggler": [{**RUNS, 'persia_straggler{phase="data"}': 0.03}, {**RUNS, 'rank:straggler:seconds_per_step{phase="data"}': 0.03}],
    "ranks dead or hung": [
        {**RUNS, "persia_process_died": 1, 'persia_straggler{phase="data"}': 0.03},
        {**RUNS, "persia_process_hung": 1, "persia_job_hung": 0},
    ],
    "hangs": [{**RUNS, "persia_job_hung": 1, "persia_process_died": 1}],
    "failed": [
        {**OVER, "persia_exec_exit_code": 137},
        {"persia_exec_exit_code": "137x2 stale", "persia_exec_interrupted": "0x2 stale", "persia_job_info": "1x2 stale"},
    ],
    "interrupted": [{**OVER, "persia_exec_exit_code": 1, "persia_exec_interrupted": 1}],
    "finished": [
        {**OVER, "persia_exec_exit_code": 0, 'persia_straggler{phase="data"}': 0.03, "persia_job_hung": 1},
        {"persia_exec_exit_code": "0x2 stale", "persia_job_info": "1x2 stale"},
        {'persia_exec_exit_code{host="a"}': 137, 'agent:replaced:bool{host="a"}': 1, 'persia_exec_exit_code{host="b"}': 0},
    ],
    "no process": [{'persia_agent_segments{state="live"}': 0, "persia_job_info": 1}],
    "not seen": [{"persia_exec_running": "1x2 stale", "persia_job_info": "1x2 stale"}],
    "no news": [{**RUNS, "agent:vanished:seconds": 300, "agent:job_running:bool": 1, "agent:silent:seconds": 300}],
}


def one_series(name, value):
    """`value`: the one that it has all the time, or what promtool takes."""
    labels = 'job="j", instance="rep_0", ip_addr="h", role="trainer"'
    return {"series": f"{name[:-1]}, {labels}}}" if name.endswith("}") else f"{name}{{{labels}}}", "values": value if isinstance(value, str) else f"{value}x10"}


# The head counts of the board of all jobs: the states that each counts.
COUNTED = {
    "Jobs that run": {"running", "straggler", "ranks dead or hung", "hangs"},
    "Jobs with a problem": {"ranks dead or hung", "hangs", "no news"},
}


def test_a_job_in_each_state_is_in_the_head_counts(tmp_path):
    asked = {panel["title"]: filled(target["expr"]) for panel, target in dashboard_rules.targets(BOARDS["persia-fleet"]) if panel["title"] in COUNTED}
    assert set(asked) == set(COUNTED) and set.union(*COUNTED.values()) < set(CASES_OF_STATES)
    other, tests = {"series": 'persia_job_info{job="other", instance="rep_0"}', "values": "1x10"}, []
    for text, cases in CASES_OF_STATES.items():
        checks = [{"expr": asked[title], "eval_time": "5m", "exp_samples": [{"labels": "{}", "value": int(text in states)}]} for title, states in COUNTED.items()]
        for case in cases:
            series = [other, *(one_series(*one) for one in case.items())]
            tests.append({"name": text, "interval": "1m", "input_series": series, "promql_expr_test": checks})
    # Of a gateway that is away, nothing is counted.
    nothing = [{"expr": expr, "eval_time": "5m", "exp_samples": []} for expr in asked.values()]
    tests.append({"interval": "1m", "input_series": [{**other, "values": "1x2 stale"}], "promql_expr_test": nothing})
    (tmp_path / "case.yml").write_text(json.dumps({"tests": tests}))
    result = promtool("test", "rules", str(tmp_path / "case.yml"))
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_state_of_a_job_is_the_worst_that_is_true(tmp_path):
    codes = {text: code for code, (text, _) in jobs.STATES.items()}
    assert set(codes) == set(CASES_OF_STATES)
    tests = []
    for text, cases in CASES_OF_STATES.items():
        for case in cases:
            check = {"expr": filled(jobs.state()), "eval_time": "5m", "exp_samples": [{"labels": '{job="j"}', "value": codes[text]}]}
            tests.append({"interval": "1m", "input_series": [one_series(*one) for one in case.items()], "promql_expr_test": [check]})
    (tmp_path / "case.yml").write_text(json.dumps({"tests": tests}))
    result = promtool("test", "rules", str(tmp_path / "case.yml"))
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_job_that_has_ended_is_listed_with_its_owner_and_a_gateway_is_not(tmp_path):
    """The job wrote to a database and failed. Its columns in the table of jobs, and those of an alert about the gateways."""
    (panel,) = [panel for panel in BOARDS["persia-fleet"]["panels"] if panel["type"] == "table"]
    columns = {target["expr"] for target in panel["targets"]}
    (owner,) = [filled(expr) for expr in columns if expr.startswith("max by (job, owner)")]
    (alert,) = [filled(expr, __range="30m") for expr in columns if "ALERTS_FOR_STATE" in expr]
    series = [{"series": 'persia_job_info{job="written", instance="rep_0", team="vision"}', "values": "1x2 stale"}]
    for name, job in (("PersiaJobFailed", "written"), ("PersiaGatewayDown", "persia_gateways")):
        series.append({"series": f'ALERTS_FOR_STATE{{alertname="{name}", job="{job}"}}', "values": "120x20"})
        series.append({"series": f'ALERTS{{alertname="{name}", job="{job}", alertstate="firing"}}', "values": "1x20"})
    checks = [
        {"expr": owner, "eval_time": "20m", "exp_samples": [{"labels": '{job="written", owner="vision"}', "value": 1}]},
        {"expr": alert, "eval_time": "20m", "exp_samples": [{"labels": '{job="written", alertname="PersiaJobFailed"}', "value": 1080}]},
    ]
    (tmp_path / "case.yml").write_text(json.dumps({"tests": [{"interval": "1m", "input_series": series, "promql_expr_test": checks}]}))
    result = promtool("test", "rules", str(tmp_path / "case.yml"))
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_board_of_a_failed_job_says_why(tmp_path):
    """Its exit code, the causes, and the rank that began; the launcher ended the other one."""
    asked = {}
    for panel, target in dashboard_rules.targets(BOARDS["persia-job"]):
        asked.setdefault(panel["title"], []).append(filled(target["expr"]))
    state, code, causes = asked["State"]
    ranks, reasons = asked["Dead, hung and failed ranks"]
    labels = 'job="j", instance="rep_%d", ip_addr="h", role="trainer", process="0"'
    series = [one_series(*one) for one in {**OVER, "persia_process_died": 0, "persia_exec_exit_code": 1}.items()]
    series.append({"series": 'persia_worker_deaths_total{job="j", instance="rep_0", cause="out_of_memory"}', "values": "_x4 1x6"})
    series += [{"series": f'persia_process_last_exit_info{{{labels % rank}, reason="{why}"}}', "values": "1x10"} for rank, why in enumerate(["SIGKILL", "SIGTERM"])]
    rank = 'job="j", instance="rep_0", role="trainer", process="0"'
    expected = {
        state: ('{job="j"}', 6),
        code: ('{job="j"}', 1),
        causes: ('{job="j", cause="out_of_memory"}', 1),
        ranks: (f"{{{rank}}}", 3),
        reasons: (f'{{{rank}, reason="SIGKILL"}}', 1),
    }
    checks = [{"expr": expr, "eval_time": "6m", "exp_samples": [{"labels": labels, "value": value}]} for expr, (labels, value) in expected.items()]
    (tmp_path / "case.yml").write_text(json.dumps({"tests": [{"interval": "1m", "input_series": series, "promql_expr_test": checks}]}))
    result = promtool("test", "rules", str(tmp_path / "case.yml"))
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_board_of_all_jobs_shows_a_team(tmp_path):
    """Each of its queries, also the alerts of the platform about the team's jobs, but for the number of alerts that fire."""
    labels = 'instance="rep_0", role="agent"'
    series, checks = [], []
    for job, team in (("a", ', team="vision"'), ("b", ', team="nlp"'), ("c", "")):
        for name in ("persia_job_info", "persia_exec_running", "persia_job_throughput", "persia_process_up"):
            series.append({"series": f'{name}{{job="{job}", {labels}{team}}}', "values": "1x10"})
        platforms = f'job="{job}", alertname="PersiaGpuLost", team="platform"'
        series.append({"series": f"ALERTS_FOR_STATE{{{platforms}}}", "values": "60x10"})
        series.append({"series": f'ALERTS{{{platforms}, alertstate="firing"}}', "values": "1x10"})
    exprs = [target["expr"] for panel, target in dashboard_rules.targets(BOARDS["persia-fleet"]) if panel["type"] == "table"]
    for team, names in (("vision", "a"), ("vision|nlp", "ab"), (".*", "abc")):
        found = [f"count by (job) ({filled(expr, team=team)})" for expr in exprs]
        some = " or ".join(found)
        checks.append({"expr": some, "eval_time": "5m", "exp_samples": [{"labels": f'{{job="{name}"}}', "value": 1} for name in names]})
        (alert,) = [one for one in found if "ALERTS_FOR_STATE" in one]
        checks.append({**checks[-1], "expr": alert})
    (tmp_path / "case.yml").write_text(json.dumps({"tests": [{"interval": "1m", "input_series": series, "promql_expr_test": checks}]}))
    result = promtool("test", "rules", str(tmp_path / "case.yml"))
    assert result.returncode == 0, result.stdout + result.stderr


STEPS = 'persia_progress_steps_total{process="%d"}'
# The speed of a job by its series: its steps each minute are 300, which are 5 per second.
SPEEDS = [
    (5, {**RUNS, STEPS % 0: "0+300x10", STEPS % 1: "0+300x10"}),
    (5, {**RUNS, STEPS % 0: "0+300x10", STEPS % 1: "300x10"}),  # a dead or hung rank
    (0, {**RUNS, STEPS % 0: "300x10", STEPS % 1: "300x10"}),
    (10, {**RUNS, "persia_job_throughput": 10}),
    (None, {"persia_exec_running": 0, STEPS % 0: "0+300x2 stale", "persia_job_throughput": 10}),  # ended, by remote write
    (None, {**RUNS, STEPS % 0: "0+300x2 stale", "persia_job_throughput": 10}),  # killed
]


@pytest.mark.parametrize("speed, case", SPEEDS)
def test_the_speed_of_a_job_is_that_of_its_ranks_that_step(speed, case, tmp_path):
    series = [one_series(*one) for one in case.items()]
    for at, one in enumerate(series):
        one["series"] = one["series"].replace("rep_0", f"rep_{at}")
    expected = [] if speed is None else [{"labels": '{job="j"}', "value": speed}]
    check = {"expr": filled(jobs.speed(), __rate_interval="2m", __range="10m"), "eval_time": "6m", "exp_samples": expected}
    (tmp_path / "case.yml").write_text(json.dumps({"tests": [{"interval": "1m", "input_series": series, "promql_expr_test": [check]}]}))
    result = promtool("test", "rules", str(tmp_path / "case.yml"))
    assert result.returncode == 0, result.stdout + result.stderr


def test_gpus_count_once_and_while_the_job_runs(tmp_path):
    """Two devices of ranks, one of which two agents see, a MIG device, and a device of no rank. After half an hour the job ends."""
    devices = ['gpu="0", instance="rep_0"', 'gpu="1", instance="rep_1"', 'gpu="1", instance="rep_1", role="agent"']
    devices += ['gpu="1:0", instance="rep_1"', 'gpu="2", instance="no_rank"']
    series = [{"series": f'persia_gpu_up{{job="j", ip_addr="h", {labels}}}', "values": "1x60"} for labels in devices]
    series.append({"series": 'persia_exec_running{job="j", instance="rep_0"}', "values": "1x30 0x30"})
    series.append({"series": 'persia_gpu_up{job="unknown", ip_addr="h", gpu="0", instance="no_rank"}', "values": "1x60"})
    hours = picture.fill_in(f"round({jobs.gpu_hours()}, 0.1)", {"__interval": "1m", "__interval_ms": "60000", "__range": "1h"})
    both = [{"labels": f'{{job="{name}"}}', "value": value} for name, value in (("j", 2), ("unknown", 1))]
    checks = [
        {"expr": filled(jobs.gpus()), "eval_time": "10m", "exp_samples": both},
        {"expr": filled(jobs.gpus()), "eval_time": "60m", "exp_samples": both[1:]},
        {"expr": hours, "eval_time": "60m", "exp_samples": [{"labels": '{job="j"}', "value": 1}, {"labels": '{job="unknown"}', "value": 1}]},
    ]
    (tmp_path / "case.yml").write_text(json.dumps({"tests": [{"interval": "1m", "input_series": series, "promql_expr_test": checks}]}))
    result = promtool("test", "rules", str(tmp_path / "case.yml"))
    assert result.returncode == 0, result.stdout + result.stderr


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
        shown = {target["legendFormat"] for other, target in of_all if other is panel}
        assert shown == {"mean", "p50", "p95", "p99"}
        assert ("heatmap" in {panel["type"] for panel, _ in of_all}) == entry.name.startswith("lookup_")
        assert charted(rf"\b{entry.name}_sec{{")
    assert panel["description"].startswith(entry.help)
    assert ("{{%s}}" % entry.label in target["legendFormat"]) == bool(entry.label)
    assert not charted(rf"(?<!rate\()\b{entry.name}{{") or entry.type == "gauge"


def test_the_tables_stand_in_rows_of_their_own():
    rows = {head["title"]: json.dumps(panels) for head, panels in dashboard_rules.rows(BOARDS["persia-training"])}
    for entry in ENTRIES:
        assert entry.name in rows[f"{entry.table.capitalize()} related: $job"]


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


def alerts():
    files = sorted((ROOT / "config/prometheus/rules").rglob("*.yml"))
    groups = [group for file in files for group in yaml.safe_load(file.read_text())["groups"]]
    return [rule for group in groups for rule in group["rules"] if "alert" in rule]


def test_each_alert_links_to_a_board_that_shows_its_metric():
    of_boards = {uid: dashboard_rules.metrics({uid: board}) for uid, board in BOARDS.items()}
    # They say of each alert's metric whether it still counts.
    everywhere = {"persia_exec_running", "push_time_seconds", "agent:vanished:seconds", "agent:silent:seconds", "agent:job_running:bool"}
    shown = set.union(*of_boards.values()) - everywhere
    checked = 0
    for alert in alerts():
        board = re.search(r"d/(persia-\w+)\?", alert["annotations"]["dashboard_url"])[1]
        asked = {re.sub("_(sum|count|bucket)$", "", name) if name not in shown else name for name in re.findall(r"[a-z_:][\w:]*", alert["expr"])} & shown
        assert not asked or asked & of_boards[board], f"{alert['alert']}: {board} shows none of {sorted(asked)}"
        checked += bool(asked)
    assert checked >= 15


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
