"""The demo job's 15 Persia metrics, from the processes that count them to a PushGateway and to Prometheus."""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from conftest import AGENT, EMBEDDING_JOB, Samples, environment
from prometheus_client.parser import text_string_to_metric_families
from servers import Gateway, Process, Prometheus, fetch, find_program, free_port, wait_until

import catalog
import table

JOB = "embedding_demo"
ENTRIES = catalog.entries()


def exposed(entry):
    """Name and type of the families of an entry."""
    if entry.type == "time_cost":
        return [(entry.name, "histogram"), (entry.name + "_sec", "gauge")]
    return [(entry.name, entry.type)]


FAMILIES = [(name, kind, entry) for entry in ENTRIES for name, kind in exposed(entry)]
IDS = [name for name, _, _ in FAMILIES]


def sample_name(name, kind):
    return name + "_count" if kind == "histogram" else name


class DemoRun:
    """The results of one run of the job."""


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Runs the job for a few seconds, with a Prometheus on the gateway and another on the agent. Read only."""
    directory = tmp_path_factory.mktemp("demo")
    segments = Path(tempfile.mkdtemp(prefix="persia-e2e-", dir="/dev/shm"))
    for name in ("gateway", "agent"):
        (directory / name).mkdir()
    report_file = directory / "report.json"
    address = f"127.0.0.1:{free_port()}"
    result = DemoRun()
    try:
        with (
            Gateway(directory) as gateway,
            Prometheus(directory / "gateway", gateway.address) as through_gateway,
            Prometheus(directory / "agent", address) as through_agent,
        ):
            command = [AGENT, "exec", f"--job={JOB}", f"--gateway={gateway.address}", f"--metrics-dir={segments}"]
            command += [f"--listen={address}", "--push-interval=0.5", "--", EMBEDDING_JOB]
            # NaNs and evictions, so that counters that stay 0 in a healthy job also count.
            # Little text, so that epochs end, and checkpoints are written, on a slow machine too.
            command += ["--duration=30", "--corpus=/usr/share/common-licenses", "--inject-nan=0.01", "--server-capacity=2000"]
            command += [f"--report={report_file}"]
            with Process(command, directory / "job.log", env=environment()) as job:

                def all_there():
                    """Asked once: a scrape that takes too long takes the series away until the next one."""
                    found = {name: through_agent.query(sample_name(name, kind)) for name, kind, _ in FAMILIES}
                    there = all(found.values()) and through_agent.query("torchelastic_checkpoint_write_latency_seconds_count")
                    return (found, fetch(f"http://{address}/metrics")[1]) if there else None

                result.from_agent, result.agent_text = wait_until(all_there, "all metrics through the agent", 40)
                result.code = job.wait(60)
            result.output = job.output()
            result.report = json.loads(report_file.read_text())
            result.gateway_text = gateway.metrics()
            result.groups = gateway.groups()
            pushed = Samples(result.gateway_text)
            wait_until(lambda: agreed(through_gateway, pushed), "Prometheus to have what the gateway has", 30)
            assert not job.group_members()
        yield result
    finally:
        shutil.rmtree(segments, ignore_errors=True)


def agreed(prometheus, pushed):
    """Whether Prometheus has the gateway's labels and values of each family."""
    names = {sample_name(name, kind) for name, kind, _ in FAMILIES}
    seen = {frozenset(item["metric"].items()): float(item["value"][1]) for name in names for item in prometheus.query(name)}
    want = {labels | {("__name__", name)}: value for (name, labels), value in pushed.items() if name in names}
    return seen == want


def families_of(text):
    return {family.name: family for family in text_string_to_metric_families(text)}


def test_job_succeeds(demo):
    assert demo.code == 0, demo.output[-4000:]


def test_counts_on_the_gateway_equal_the_jobs_own(demo):
    rows = table.rows(demo.groups, demo.report, JOB)
    assert table.problems(rows, [entry.name for entry in ENTRIES]) == [], table.render(rows)
    assert sum(row.must_agree for row in rows) >= len(ENTRIES) - 5


def test_every_counter_did_count(demo):
    """Checks that the counts are not zero, because zeros on both sides would agree too."""
    pushed = Samples(demo.gateway_text)
    for entry in ENTRIES:
        if entry.type != "gauge":
            name = entry.name + "_count" if entry.type == "time_cost" else entry.name
            assert max(value for (other, _), value in pushed.items() if other == name) > 0, f"{name} stayed 0"


@pytest.mark.parametrize("name, kind, entry", FAMILIES, ids=IDS)
def test_gateway_has_help_type_and_labels(demo, name, kind, entry):
    family = families_of(demo.gateway_text)[name]
    lines = demo.gateway_text.splitlines()
    assert f"# TYPE {name} {kind}" in lines
    assert family.documentation == entry.help + (" The last one." if name.endswith("_sec") else "")
    assert family.samples
    for sample in family.samples:
        own = {"job", "instance", "ip_addr", "role"} | ({entry.label} if entry.label else set())
        assert set(sample.labels) - {"le"} == own
        assert sample.labels["job"] == JOB
        assert all(sample.labels.values())


@pytest.mark.parametrize("name, kind, entry", FAMILIES, ids=IDS)
def test_prometheus_answers_through_the_agent(demo, name, kind, entry):
    answer = demo.from_agent[name]
    assert answer
    for item in answer:
        labels = item["metric"]
        assert labels["job"] == JOB
        assert labels["instance"].startswith("rep_")
        assert not [label for label in labels if label.startswith("exported_")]


# promtool wants `_total` on counters, `_count` on distributions alone, and "seconds" for "sec"; but the names are PersiaML's.
EXPECTED_LINT = sorted(
    [f'{entry.name} counter metrics should have "_total" suffix' for entry in ENTRIES if entry.type == "counter"]
    + [
        f'{entry.name} non-histogram and non-summary metrics should not have "_count" suffix'
        for entry in ENTRIES
        if entry.name.endswith("_count")
    ]
    + [f"{entry.name}_sec metric names should not contain abbreviated units" for entry in ENTRIES if entry.type == "time_cost"]
)


@pytest.mark.parametrize("source", ["agent_text", "gateway_text"])
def test_promtool_finds_only_the_lint_of_names_that_are_given(demo, source):
    text = getattr(demo, source)
    result = subprocess.run([find_program("promtool"), "check", "metrics"], input=text, capture_output=True, text=True, timeout=30)
    found = sorted(line for line in (result.stdout + result.stderr).splitlines() if line)
    assert found == EXPECTED_LINT
