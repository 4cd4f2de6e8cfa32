"""The times when counts began, from the agent and from a real PushGateway, scraped as protobuf."""

import subprocess
import time
import urllib.request

from conftest import ROOT
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal.decoder import _DecodeVarint
from servers import wait_until

PROTOBUF = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
COUNTS = {"my_app_batches": "counter", "my_app_latency": "histogram"}


def family_class(tmp_path):
    folder = ROOT / "tests/unit/format"
    described = tmp_path / "metric_family.pb"
    command = ["protoc", f"--proto_path={folder}", f"--descriptor_set_out={described}", "metric_family.proto"]
    subprocess.run(command, check=True, timeout=30)
    files = descriptor_pb2.FileDescriptorSet.FromString(described.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(files.file[0])
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("persia_test.MetricFamily"))


def families(body, of_class):
    """By name."""
    found, at = {}, 0
    while at < len(body):
        size, at = _DecodeVarint(body, at)
        family = of_class.FromString(body[at : at + size])
        found[family.name] = family
        at += size
    return found


def scrape(address, accept):
    request = urllib.request.Request(f"http://{address}/metrics", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.headers["Content-Type"], answer.read()


def counting_worker(job):
    """One that has counted, and when it did: two times in seconds."""
    before = int(time.time())
    worker = job.worker()
    for told in ("count my_app batches 7", "observe my_app latency 0.3", "set my_app loss 0.5"):
        worker.tell(told)
    return worker, before, time.time()


def assert_created(body, tmp_path, before, after):
    found = families(body, family_class(tmp_path))
    for name, kind in COUNTS.items():
        (metric,) = found[name].metric
        created = getattr(metric, kind).created_timestamp
        assert before <= created.seconds <= after, name


def test_a_gateway_passes_on_when_counts_began(job, gateway, tmp_path):
    agent = job.agent("--push-interval=0.2")
    wait_until(agent.metrics, "a collection without the worker")
    worker, before, after = counting_worker(job)
    gateway.wait_for("my_app_loss", 0.5)
    assert worker.leave() == 0
    assert_created(scrape(gateway.address, PROTOBUF)[1], tmp_path, before, after)
    text = scrape(gateway.address, "text/plain")[1].decode()
    assert "my_app_batches{" in text and "my_app_batches_created" not in text


def test_an_agent_says_when_counts_began(job, tmp_path):
    agent = job.agent()
    wait_until(agent.metrics, "a collection without the worker")
    worker, before, after = counting_worker(job)
    wait_until(lambda: agent.metrics().one("my_app_loss") == 0.5, "the worker's metrics")
    kind, body = scrape(agent.address, PROTOBUF)
    assert kind.startswith("application/vnd.google.protobuf")
    assert_created(body, tmp_path, before, after)
    kind, text = scrape(agent.address, "*/*")
    assert kind.startswith("text/plain") and b"my_app_batches_created" not in text
    assert worker.leave() == 0
    wait_until(lambda: agent.metrics().one("persia_agent_retired_processes_total") == 1, "the end of the worker")
    assert_created(scrape(agent.address, PROTOBUF)[1], tmp_path, before, after)


def test_a_prometheus_that_asks_for_protobuf_stores_what_the_text_says(job, prometheus):
    agent = job.agent("--gateway=off")
    counting_worker(job)
    wait_until(lambda: agent.metrics().one("my_app_loss") == 0.5, "the worker's metrics")
    servers = [prometheus(agent.address), prometheus(agent.address, features=["native-histograms"])]

    def stored(server):
        """Each series but those of the scrape itself and of the requests to the agent, with its value if that does not change."""
        found = {}
        for series in server.query('{job="job_under_test"}'):
            labels = series["metric"]
            if "le" in labels:
                labels["le"] = float(labels["le"])
            name = labels["__name__"]
            found[tuple(sorted(labels.items()))] = series["value"][1] if name.startswith("my_app") else ""
        return found

    wait_until(lambda: all("my_app_loss" in str(stored(server)) for server in servers), "a scrape by both")

    # A scrape that takes too long takes the series away until the next one.
    def are_same():
        first, second = map(stored, servers)
        return len(first) > 100 and first == second

    wait_until(are_same, "the same series and values")
    wait_until(lambda: servers[1].query('my_app_latency_bucket{le="1.0"}'), "the bucket of le=1, which only text has in Prometheus 2")
