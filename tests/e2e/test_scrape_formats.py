"""The formats of /metrics, as clients ask for them: each has the same series, and real readers take them."""

import urllib.request

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open_metrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from servers import wait_until

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
    assert scrape(agent, PROMETHEUS_3)[0] == "application/openmetrics-text; version=1.0.0; charset=utf-8"


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
