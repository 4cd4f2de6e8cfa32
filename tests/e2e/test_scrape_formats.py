"""The formats of /metrics, as clients ask for them: each has the same series, and real readers take them."""

import json
import urllib.request

import pytest
from conftest import Samples
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open_metrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from servers import fetch, wait_until

PROTOBUF = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
OPEN_METRICS = "application/openmetrics-text;version=1.0.0"
# The header of a real server.
PROMETHEUS_3 = (
    f"{OPEN_METRICS};escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


@pytest.fixture
def agent(job):
    """Of a job with metrics of all types."""
    agent = job.agent("--gateway=off")
    worker = job.worker()
    for line in ("count my_app batches 7", "count my_app reads_total 3", "set my_app loss 0.25", "observe my_app latency 0.3"):
        worker.tell(line)
    worker.tell('count_feat my_app misses a"b\\c 2')


    def has_all():
        shown = agent.metrics()
        return shown.one("my_app_latency_count") == 1 and shown.one("my_app_misses") == 2

    wait_until(has_all, "the worker's metrics")
    return agent


def scrape(agent, accept=None):
    headers = {} if accept is None else {"Accept": accept}
    with urllib.request.urlopen(urllib.request.Request(agent.url + "/metrics", headers=headers), timeout=10) as answer:
        return answer.headers["Content-Type"], answer.read()


def test_the_type_is_the_one_that_is_asked_for(agent):
    assert scrape(agent)[0] == "text/plain; version=0.0.4; charset=utf-8"
    assert scrape(agent, PROMETHEUS_3)[0] == "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=allow-utf-8"


def samples(families, moving=("persia_agent_", "process_", "persia_process_")):
    """Of families that do not change between two scrapes; limits of buckets as numbers."""
    found = {}
    for family in families:
        for sample in family.samples:
            labels = {name: float(value) if name in ("le", "quantile") else value for name, value in sample.labels.items()}
            if not sample.name.startswith(moving):
                found[sample.name, tuple(sorted(labels.items()))] = sample.value
    return found


def test_a_strict_parser_finds_the_series_of_the_text_in_openmetrics(agent):
    def same():
        """Values of the machine change if there is a collection between the scrapes."""
        text, open_metrics = scrape(agent)[1].decode(), scrape(agent, OPEN_METRICS)[1].decode()
        families = list(parse_open_metrics(open_metrics))
        # Without types: by them, prometheus_client renames counters without `_total`.
        untyped = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("# TYPE"))
        ours, theirs = samples(families), samples(parse_text(untyped))
        if ours != theirs:
            raise ValueError(f"they differ: {sorted(ours.items() ^ theirs.items())}")
        return ours and (open_metrics, families)

    open_metrics, families = wait_until(same, "the same samples")
    assert open_metrics.endswith("\n# EOF\n")
    types = {family.name: family.type for family in families}
    assert types["my_app_batches"] == "unknown" and types["my_app_reads"] == "counter" and types["my_app_latency"] == "histogram"
    assert types["persia_agent_scrapes"] == "counter" and "_created" not in open_metrics
    assert {family.name: family.unit for family in families}["process_cpu_seconds"] in ("", "seconds")


RULES = """
mappings:
- {match: batches, name: my.app/batches_total, labels: {data.set: a}}
- {match: latency, name: "${group}.latency"}
- {match: "loss", name: my_app.loss}
- {match: "loss_too", name: my_app/loss}
"""
UTF8 = {
    '"my.app/batches_total","data.set"="a","my.team"="ads"': 7,
    '"my_app.latency_count","my.team"="ads"': 1,
    '"my_app.loss"': 0.25,
    '"my_app/loss"': 0.5,
}
ESCAPED = {
    'my_app_batches_total{data_set="a",my_team="ads"}': 7,
    'my_app_latency_count{my_team="ads"}': 1,
    # The second of two names that would become one is escaped by another scheme.
    "my_app_loss": 0.25,
    "U__my__app_2f_loss": 0.5,
}


@pytest.fixture
def renamed(job, tmp_path):
    """Starts an agent whose rules and settings have names that only Prometheus 3 takes."""
    (tmp_path / "rules.yaml").write_text(RULES)

    def start(*flags):
        agent = job.agent(f"--mapping-file={tmp_path / 'rules.yaml'}", "--label=my.team=ads", *flags)
        worker = job.worker()
        for line in ("count my_app batches 7", "observe my_app latency 0.3", "set my_app loss 0.25", "set my_app loss_too 0.5"):
            worker.tell(line)
        # All of them: a scrape may read a later instrument before an earlier one is set.
        names = ("my_app_batches_total", "my_app_latency_count", "my_app_loss", "U__my__app_2f_loss")
        wait_until(lambda: all(map(agent.metrics().one, names)), "the worker's metrics")
        return agent

    return start


def test_a_reader_of_utf8_gets_names_in_quotes(renamed):
    agent = renamed("--gateway=off")
    for accept in ("text/plain;version=1.0.0;escaping=allow-utf-8", f"{OPEN_METRICS};escaping=allow-utf-8"):
        lines = scrape(agent, accept)[1].decode().splitlines()
        (line,) = [line for line in lines if line.startswith('{"my.app/batches_total",')]
        assert line.endswith(" 7") and ',"my.team"="ads"' in line and ',"data.set"="a"' in line and ',role="trainer"' in line
        family = "my.app/batches" if accept.startswith("app") else "my.app/batches_total"
        assert f'# TYPE "{family}" counter' in lines
    body = scrape(agent, f"{PROTOBUF},{OPEN_METRICS};q=0.5;escaping=allow-utf-8")[1]
    assert b"my.app/batches_total" in body and b"my.team" in body
    assert b"my.app" not in scrape(agent, PROTOBUF)[1]


def test_other_readers_get_escaped_names(renamed, job, gateway, receiver):
    agent = renamed(f"--remote-write={receiver.url}")
    for accept in (None, OPEN_METRICS, "text/plain;version=1.0.0"):
        text = scrape(agent, accept)[1].decode()
        found = Samples(text)
        assert found.one("my_app_batches_total", data_set="a", my_team="ads") == 7 and found.one("my_app_loss") == 0.25
        assert found.one("U__my__app_2f_loss") == 0.5
        assert text.count("# TYPE my_app_loss ") == 1
    values = Samples(scrape(agent, "text/plain;escaping=values")[1].decode())
    assert values.one("U__my_2e_app_2f_batches__total", U__data_2e_set="a", U__my_2e_team="ads") == 7
    gateway.wait_for("my_app_batches_total", 7, data_set="a", my_team="ads")
    wait_until(lambda: receiver.last("my_app_batches_total", data_set="a", my_team="ads") == 7 or None, "the sample")
    assert receiver.errors == []


def check_names(server):
    """Prometheus 3 asks for the names as they are, Debian's does not."""
    version = json.loads(fetch(server.url + "/api/v1/status/buildinfo")[1])["data"]["version"]
    selectors = ESCAPED if version.startswith("2.") else {"{" + selector + "}": value for selector, value in UTF8.items()}
    for selector, value in selectors.items():
        (found,) = wait_until(lambda selector=selector: server.query(selector), f"the series {selector}")
        assert float(found["value"][1]) == value
    assert bool(server.query("my_app_batches_total")) == version.startswith("2.")


def test_prometheus_reads_the_names_that_it_takes(renamed, prometheus):
    check_names(prometheus(renamed("--gateway=off").address))


@pytest.mark.current
def test_a_current_prometheus_reads_the_names_from_protobuf(renamed, prometheus):
    check_names(prometheus(renamed("--gateway=off").address, features=("created-timestamp-zero-ingestion",)))


SELECTORS = {"my_app_batches": 7, "my_app_reads_total": 3, "my_app_loss": 0.25, "my_app_latency_count": 1, "my_app_misses": 2}


def check_series(agent, server):
    for selector, value in SELECTORS.items():
        (found,) = wait_until(lambda selector=selector: server.query(selector), f"the series {selector}")
        assert float(found["value"][1]) == value
    assert wait_until(lambda: server.query("up == 1"), "a scrape")


def test_prometheus_scrapes_openmetrics(agent, prometheus):
    check_series(agent, prometheus(agent.address))


@pytest.mark.current
def test_a_current_prometheus_scrapes_protobuf(agent, prometheus):
    check_series(agent, prometheus(agent.address, features=("created-timestamp-zero-ingestion",)))
