"""Mapping rules: their effect on a job's metrics, changes at run time, and `explain`."""

import subprocess

import pytest
from conftest import AGENT
from servers import ROOT, fetch, wait_until


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / "mapping.yaml"

    def write(text):
        draft = path.with_suffix(".draft")
        draft.write_text(text)
        draft.rename(path)
        return path

    write.path = path
    return write


def run(*arguments):
    return subprocess.run([AGENT, *arguments], capture_output=True, text=True, timeout=60)


def reload(agent):
    return fetch(agent.url + "/-/reload", method="POST")


def start(job, rules):
    agent = job.agent(f"--mapping-file={rules.path}", "--web.enable-lifecycle=true")
    wait_until(agent.metrics, "the agent's pages")
    return agent


def test_a_changed_rule_shows_at_the_next_tick_and_the_worker_is_left_alone(job, gateway, rules):
    rules("mappings:\n- {match: steps.*, name: first_total, labels: {stage: $1}}\n")
    agent = start(job, rules)
    worker = job.worker()
    worker.tell("count my_app steps.train 3")
    gateway.wait_for("first_total", 3, stage="train")
    rules("mappings:\n- {match: steps.*, name: second_total, labels: {part: $1}, scale: 0.5, help: By rule.}\n")
    assert reload(agent) == (200, "Reloaded.\n")
    gateway.wait_for("second_total", 1.5, part="train")
    assert gateway.metrics().one("first_total") is None
    assert "changed: mapping_file" in agent.output()
    wait_until(lambda: "# HELP second_total By rule." in fetch(agent.url + "/metrics")[1], "the help on /metrics")
    worker.tell("count my_app steps.train 1")
    gateway.wait_for("second_total", 2, part="train")
    rules("mappings:\n- {match: steps.*, action: drop}\n")
    assert reload(agent)[0] == 200
    wait_until(lambda: gateway.metrics().one("second_total") is None, "the dropped metric to leave the gateway")
    rules("mappings: []\n")
    assert reload(agent)[0] == 200
    gateway.wait_for("my_app_steps_train", 4)
    assert worker.running()


def test_bad_rules_are_refused_and_the_old_ones_stay(job, gateway, rules):
    rules("mappings:\n- {match: steps, name: steps_total}\n")
    agent = start(job, rules)
    worker = job.worker()
    worker.tell("count my_app steps 3")
    gateway.wait_for("steps_total", 3)
    rules("mappings:\n- match: steps\n  name: other_total\n  type: gague\n")
    status, body = reload(agent)
    place = f'{rules.path}:4:9: type: "gague" is not one of: gauge, counter, histogram, summary'
    assert status == 500 and place in body
    assert place in agent.output()
    worker.tell("count my_app steps 1")
    gateway.wait_for("steps_total", 4)
    assert gateway.metrics().one("other_total") is None


def test_a_role_in_a_rule_leads_to_that_roles_group(job, gateway, rules):
    rules("mappings:\n- {match: workers.*.restarts, name: restarts, labels: {role: $1}}\n")
    start(job, rules)
    launcher = job.worker(role="launcher")
    trainer = job.worker(role="trainer")
    launcher.tell("set elastic workers.trainer.restarts 2")
    trainer.tell("set my_app loss 0.5")
    gateway.wait_for("restarts", 2, role="trainer", instance="rep_0")
    gateway.wait_for("my_app_loss", 0.5, role="trainer", instance="rep_0")
    assert gateway.metrics().one("restarts", role="launcher") is None


def test_rules_hold_for_once_and_for_exec(job, rules, tmp_path):
    rules("mappings:\n- {match: steps, name: steps_total}\n")
    worker = job.worker()
    worker.tell("count my_app steps 3")
    result = run("once", f"--job={job.name}", f"--metrics-dir={job.segments}", f"--mapping-file={rules.path}")
    assert result.returncode == 0 and '\nsteps_total{' in result.stdout
    rules("mappings: nothing\n")
    result = run("exec", f"--job={job.name}", f"--metrics-dir={tmp_path / 'other'}", f"--mapping-file={rules.path}", "--", "echo", "ran")
    assert result.returncode == 0 and result.stdout == "ran\n"
    assert f"{rules.path}:1:11: mappings: expected a list of rules" in result.stderr
    assert "the rest of the file applies" in result.stderr


@pytest.mark.parametrize("mode", ["exec", "run"])
def test_a_wrong_rule_costs_that_rule(job, gateway, rules, mode):
    drop = "{match: ., match_type: regex, action: drop}"
    rules(f"mappings:\n- {{match: steps.*, name: $3}}\n- {{match: other.*, name: other_total}}\n- {drop}\n")
    flag = f"--mapping-file={rules.path}"
    agent = job.exec_worker(flag) if mode == "exec" else job.agent(flag)
    worker = agent if mode == "exec" else job.worker()
    worker.tell("count my_app steps.train 3")
    worker.tell("count my_app other.train 2")
    worker.tell("count my_app left 1")
    gateway.wait_for("my_app_steps_train", 3)
    gateway.wait_for("other_total", 2)
    wait_until(lambda: agent.metrics().one("my_app_steps_train") == 3, "the same on the agent's page")
    assert gateway.metrics().one("my_app_left") is None
    assert agent.metrics().one("persia_agent_config_errors") == 1
    assert f'{rules.path}:2:26: name: "$3": $3 refers to nothing' in agent.output()


def test_explain_says_which_rule_matches_and_what_comes_out(rules):
    golden = (ROOT / "tests/unit/cli/testdata/explain_bundled.txt").read_text()
    metrics = [line.removesuffix(" (stream)") for line in golden.splitlines() if line.endswith(" (stream)")]
    result = run("explain", "--type=stream", *metrics)
    assert (result.returncode, result.stdout) == (0, golden)
    rules("mappings:\n- {match: a.*, name: a_total}\n")
    result = run("explain", "--type=counter", f"--mapping-file={rules.path}", "g/a.b")
    assert result.stdout == (
        f"g/a.b (counter)\n  rule      {rules.path}:2: a.*\n  name      a_total\n"
        "  type      counter, as in the program\n  help      the program's own\n"
    )


def test_explain_has_the_type_that_the_job_gives_the_metric(job):
    job.agent()
    job.worker().tell("count my_app steps 1")
    shown = run("explain", f"--metrics-dir={job.segments}", "my_app/steps", "my_app/other").stdout
    known, other = shown.split("\n\n")
    assert known.splitlines()[0] == "my_app/steps (counter)"
    assert "  name      my_app_steps\n" in known and "  type      counter, as in the program\n" in known
    assert other.splitlines()[0] == "my_app/other" and "no process of the job" in other


@pytest.mark.parametrize(
    "arguments, said",
    [
        ([], "a metric is missing"),
        (["--type=timer", "g/a"], 'timer" is not one of: stream, counter, gauge, histogram'),
        (["--mapping-file=/no/such.yaml", "g/a"], "/no/such.yaml"),
    ],
    ids=["nothing", "type", "file"],
)
def test_explain_refuses(arguments, said):
    result = run("explain", *arguments)
    assert result.returncode == 2 and said in result.stderr and result.stdout == ""


def test_the_rules_of_the_document_do_what_it_says(rules):
    document = (ROOT / "config/README.md").read_text()
    rules(document[document.index("defaults:\n  ttl") :].split("```")[0])
    shown = run("explain", f"--mapping-file={rules.path}", "torchelastic/workers.a.flakiness", "g/f.duration.ms", "g/debug.x").stdout
    names = [line.split()[1] for line in shown.splitlines() if line.startswith(("  name", "  action"))]
    assert names == ["torchelastic_worker_group_flakiness_ratio", "g_function_duration_seconds", "drop:"]
    assert "0.016, 0.256, 4.096, +Inf" in shown and "asked for" not in shown


def test_check_config_that_cannot_be_printed_fails():
    with open("/dev/full", "w") as full:
        result = subprocess.run([AGENT, "check-config"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=10)
    assert result.returncode == 1


def test_check_config_checks_rules(rules):
    rules("mappings:\n- {match: a, labels: {job: x}}\n")
    result = run("check-config", f"--mapping-file={rules.path}")
    assert result.returncode == 0 and f"mapping_file:            {rules.path}" in result.stdout
    assert f"# {rules.path}:2:23: label job belongs to the agent" in result.stdout
    rules("mappings:\n- {match: a, nmae: b}\n")
    result = run("check-config", f"--mapping-file={rules.path}")
    assert result.returncode == 2 and f'{rules.path}:2:14: unknown key "nmae"; did you mean "name"?' in result.stderr
