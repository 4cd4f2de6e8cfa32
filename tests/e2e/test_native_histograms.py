"""Native histograms, of streams and of programs, in a real Prometheus: by scrape, by remote write and through a PushGateway."""

import json
import random
import re
import signal
import subprocess

import pytest
from remote_write_databases import PrometheusReceiver
from servers import fetch, find_program, wait_until

FEATURES = ("native-histograms",)
RULES = """
mappings:
- {match: latency, group: my_app, native: true, buckets: [0.25, 1, 4]}
- {match: both, group: my_app, native: true, classic: true, buckets: [0.25, 1, 4]}
"""


class NativeReceiver(PrometheusReceiver):
    """Takes native histograms by remote write."""

    def command(self):
        return [*super().command(), "--enable-feature=native-histograms"]

    def query(self, expression):
        return self.ask(expression)


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / "mapping.yaml"
    path.write_text(RULES)
    return f"--mapping-file={path}"


def target(tmp_path, url, **settings):
    path = tmp_path / "remote.yaml"
    path.write_text(json.dumps({"PersiaMetricsConfig": {"remote_write": [{"url": f"{url}/api/v1/write", **settings}]}}))
    return f"--config={path}"


def observe(worker, verb, name, seed=7, count=200):
    """Adds values over five orders of magnitude; returns them, sorted."""
    source = random.Random(seed)
    values = [float(f"{source.lognormvariate(-1, 2):.6g}") for _ in range(count)]
    for value in values:
        worker.tell(f"{verb} my_app {name} {value}")
    return sorted(values)


def value(server, expression):
    (found,) = wait_until(lambda: server.query(expression), expression)  # none after a scrape that came too late
    return float(found["value"][1])


def wait_for_count(server, name, count):
    wait_until(lambda: value(server, f"histogram_count({name})") == count, f"{count} observations of {name}", 60)


def check_quantiles(server, name, values, factor):
    """Within one bucket of the truth."""
    for quantile in (0.1, 0.5, 0.9, 0.99):
        truth = values[max(0, -int(-quantile * len(values) // 1) - 1)]
        estimate = value(server, f"histogram_quantile({quantile}, {name})")
        assert truth / factor <= estimate * 1.000001 and estimate <= truth * factor * 1.000001, (quantile, truth, estimate)
    assert value(server, f"histogram_sum({name})") == pytest.approx(sum(values))


def refused(agent):
    """Samples that the target rejected."""
    return sum(number for (name, _), number in agent.metrics().items() if name == "persia_agent_remote_write_samples_failed_total")


def check_one_series(server, name):
    """The classic form has one for each bucket, `_sum` and `_count`."""
    assert value(server, f'count({{__name__=~"{name}(_bucket|_sum|_count)?"}})') == 1


def check_a_stream_and_a_program(server, worker):
    """Both are one series with the quantiles of what the worker observes."""
    of_stream = observe(worker, "stream", "latency")
    of_program = observe(worker, "native", "steps", seed=8)
    wait_for_count(server, "my_app_latency", 200)
    wait_for_count(server, "my_app_steps", 200)
    check_quantiles(server, "my_app_latency", of_stream, 2 ** (1 / 4))
    check_quantiles(server, "my_app_steps", of_program, 2 ** (1 / 8))
    check_one_series(server, "my_app_latency")
    check_one_series(server, "my_app_steps")


@pytest.fixture
def scraped(prometheus):
    """Starts a Prometheus that takes native histograms. Since 3.8 a setting decides, and since 3.9 the flag has no effect."""
    version = subprocess.run([find_program("prometheus"), "--version"], capture_output=True, text=True, check=True).stdout
    release = tuple(int(part) for part in re.search(r"version (\d+)\.(\d+)", version).groups())
    settings = "    scrape_native_histograms: true\n" if release >= (3, 8) else ""
    return lambda target: prometheus(target, features=FEATURES, settings=settings)


def test_a_scrape_stores_one_series_and_its_quantiles_are_within_a_bucket(scraped, job, rules):
    agent = job.agent("--gateway=off", rules)
    server = scraped(agent.address)
    check_a_stream_and_a_program(server, job.worker())


def test_remote_write_stores_one_series_and_its_quantiles_are_within_a_bucket(job, started, tmp_path, rules):
    server = NativeReceiver(tmp_path, started)
    agent = job.agent("--gateway=off", rules, target(tmp_path, server.url, send_native_histograms=True))
    check_a_stream_and_a_program(server, job.worker())
    wait_until(lambda: server.query("persia_agent_remote_write_request_duration_seconds"), "its own native histogram")
    assert refused(agent) == 0


def test_the_increase_over_two_runs_is_what_both_counted(job, started, tmp_path, rules):
    """The second run begins at zero. Without its reset, the increase would be negative, or the second run's alone."""
    server = NativeReceiver(tmp_path, started)
    for count in (60, 20):
        agent = job.exec_worker("--gateway=off", rules, target(tmp_path, server.url, send_native_histograms=True))
        observe(agent, "stream", "latency", count=count)
        wait_for_count(server, "my_app_latency", count)
        assert agent.leave() == 0
    increase = value(server, "histogram_count(increase(my_app_latency[5m]))")
    assert increase == pytest.approx(80, rel=0.2), "extrapolated to half an interval at both ends"


def test_a_series_that_ends_is_stale_at_once(job, started, tmp_path, rules):
    server = NativeReceiver(tmp_path, started)
    agent = job.exec_worker("--gateway=off", rules, "--on-job-end=delete", target(tmp_path, server.url, send_native_histograms=True))
    agent.tell("stream my_app latency 1")
    wait_for_count(server, "my_app_latency", 1)
    assert agent.leave() == 0
    wait_until(lambda: server.ask("my_app_latency") == [], "the end of the series")


def test_the_classic_form_is_beside_it_where_asked(job, started, tmp_path, rules):
    server = NativeReceiver(tmp_path, started)
    job.agent("--gateway=off", rules, target(tmp_path, server.url, send_native_histograms=True))
    values = observe(job.worker(), "stream", "both", count=50)
    wait_for_count(server, "my_app_both", 50)
    check_quantiles(server, "my_app_both", values, 2 ** (1 / 4))
    assert value(server, "my_app_both_count") == 50
    assert value(server, 'my_app_both_bucket{le="1"}') == sum(number <= 1 for number in values)


def test_a_target_that_is_not_told_and_a_reader_of_text_get_the_classic_form(job, started, tmp_path, rules):
    server = PrometheusReceiver(tmp_path, started)
    agent = job.agent("--gateway=off", rules, target(tmp_path, server.url))
    worker = job.worker()
    for number in (0.25, 0.5, 8):
        worker.tell(f"stream my_app latency {number}")
    wait_until(lambda: list(server.query("my_app_latency_count").values()) == [3], "the count")
    buckets = {dict(labels)["le"]: found for labels, found in server.query("my_app_latency_bucket").items()}
    assert buckets == {"0.25": 1, "1": 2, "4": 2, "+Inf": 3}
    text = fetch(agent.url + "/metrics")[1]
    assert re.findall(r'my_app_latency_bucket\{.*le="(.*)"\} (\d)', text) == [("0.25", "1"), ("1", "2"), ("4", "2"), ("+Inf", "3")]


def test_a_gateway_passes_native_buckets_on(scraped, job, gateway, rules):
    """Also PushGateway 1.5.1 keeps them. A reader of its text gets the classic form."""
    job.agent(rules, "--push-format=protobuf")
    server = scraped(gateway.address)
    worker = job.worker()
    values = observe(worker, "stream", "latency")
    gateway.wait_for("my_app_latency_count", 200)
    wait_for_count(server, "my_app_latency", 200)
    check_quantiles(server, "my_app_latency", values, 2 ** (1 / 4))
    assert gateway.metrics().one("my_app_latency_bucket", le="1") == sum(number <= 1 for number in values)


def test_a_target_that_refuses_them_gets_the_rest_once_the_setting_is_false(job, started, tmp_path, rules):
    """A Prometheus before 3.9 without the feature answers 500. What the disk queue has of them must not block it."""
    server = PrometheusReceiver(tmp_path, started)
    agent = job.agent("--gateway=off", rules, target(tmp_path, server.url, send_native_histograms=True))
    worker = job.worker()
    worker.tell("stream my_app latency 1")
    worker.tell("count my_app batches 5")

    def arrived():
        return list(server.query("my_app_batches").values()) == [5]

    refusal = "native histograms are disabled; enable native histograms there, or set send_native_histograms: false"
    wait_until(lambda: refusal in agent.output() or arrived(), "the refusal, or a Prometheus that takes them")
    is_refused = refusal in agent.output()
    target(tmp_path, server.url, send_native_histograms=False)
    agent.signal(signal.SIGHUP)
    wait_until(arrived, "the counter")
    if is_refused:
        assert "samples of native histograms, queued while send_native_histograms was true, which are dropped: status" in agent.output()
        wait_until(lambda: refused(agent) > 0, "their count")
    wait_until(lambda: list(server.query("my_app_latency_count").values()) == [1], "the classic form")
