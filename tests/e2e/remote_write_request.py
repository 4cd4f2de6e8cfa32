"""Parses requests of remote write 1.0 as strictly as the specification allows. A violation raises BadRequest."""

import importlib
import re
import struct
import subprocess
import sys
import tempfile

import snappy
from servers import ROOT

METRIC_NAME = re.compile("[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL_NAME = re.compile("[a-zA-Z_][a-zA-Z0-9_]*")
HEADERS = {
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "snappy",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}


def _messages():
    """The classes that protoc generates for the protocol's messages."""
    with tempfile.TemporaryDirectory() as directory:
        source = ROOT / "tests/unit/remote"
        subprocess.run(["protoc", f"--proto_path={source}", f"--python_out={directory}", "remote_write.proto"], check=True, timeout=60)
        sys.path.insert(0, directory)
        try:
            return importlib.import_module("remote_write_pb2")
        finally:
            sys.path.remove(directory)


MESSAGES = _messages()


class BadRequest(Exception):
    pass


def require(holds, why):
    if not holds:
        raise BadRequest(why)


def decode(headers, body):
    """The series of a request: (labels, [(timestamp, bits of the value)]) each; and its metadata: (type, help) by family."""
    for name, value in HEADERS.items():
        require(headers.get(name) == value, f"header {name}: {headers.get(name)!r}")
    require(headers.get("User-Agent", "").startswith("persia-metrics-agent/"), f"header User-Agent: {headers.get('User-Agent')!r}")
    try:
        request = MESSAGES.WriteRequest.FromString(snappy.uncompress(body))
    except Exception as error:
        raise BadRequest(f"not a request: {error}") from error
    size = request.ByteSize()
    request.DiscardUnknownFields()
    require(request.ByteSize() == size, "fields that the protocol does not have")
    found = [_series(series) for series in request.timeseries]
    metadata = {family.metric_family_name: (_type(family), family.help) for family in request.metadata}
    require(found or metadata, "neither series nor metadata")
    require(not (found and metadata), "series and metadata in one request")
    require(all(METRIC_NAME.fullmatch(name) for name in metadata), "metadata of what is no metric's name")
    require(len(metadata) == len(request.metadata), "a family is twice in one request")
    require(len({labels for labels, _ in found}) == len(found), "a series is twice in one request")
    return found, metadata


def _type(family):
    return MESSAGES.MetricMetadata.MetricType.Name(family.type).lower()


def _series(series):
    labels = tuple((label.name, label.value) for label in series.labels)
    names = [name for name, _ in labels]
    require(names == sorted(set(names)), f"labels are not sorted, or one is twice: {labels}")
    require(all(value for _, value in labels), f"an empty value: {labels}")
    require("__name__" in names, f"no name: {labels}")
    require(METRIC_NAME.fullmatch(dict(labels)["__name__"]), f"not a metric's name: {labels}")
    require(all(LABEL_NAME.fullmatch(name) for name in names), f"not a label's name: {labels}")
    require(series.samples, f"no samples: {labels}")
    return labels, [(sample.timestamp, struct.unpack("<Q", struct.pack("<d", sample.value))[0]) for sample in series.samples]
