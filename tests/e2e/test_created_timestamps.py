"""A real PushGateway passes on when counts began, to a Prometheus that scrapes it as protobuf."""

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


def test_a_gateway_passes_on_when_counts_began(job, gateway, tmp_path):
    agent = job.agent("--push-format=protobuf", "--push-interval=0.2")
    wait_until(agent.metrics, "a collection without the worker")
    before = int(time.time())
    worker = job.worker()
    for told in ("count my_app batches 7", "observe my_app latency 0.3", "set my_app loss 0.5"):
        worker.tell(told)
    gateway.wait_for("my_app_loss", 0.5)
    after = time.time()
    assert worker.leave() == 0

    def shown(accept):
        request = urllib.request.Request(f"http://{gateway.address}/metrics", headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read()

    found = families(shown(PROTOBUF), family_class(tmp_path))
    for name, kind in COUNTS.items():
        (metric,) = found[name].metric
        created = getattr(metric, kind).created_timestamp
        assert before <= created.seconds <= after, name
    text = shown("text/plain").decode()
    assert "my_app_batches{" in text and "my_app_batches_created" not in text
