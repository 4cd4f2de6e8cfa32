"""The receiver of the remote write tests accepts valid requests, and refuses each violation of the protocol."""

import http.client
import struct

import pytest
import snappy
from remote_write_request import HEADERS

AGENT = {**HEADERS, "User-Agent": "persia-metrics-agent/1.0"}
PATH = "/api/v1/write"
UNKNOWN = b"\x3a\x01x"  # field 7, one byte


def field(number, content):
    """A bytes field in protobuf encoding."""
    assert number < 16 and len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def label(name, value, more=b""):
    return field(1, field(1, name.encode()) + field(2, value.encode()) + more)


def sample(value=1.0, at=100, more=b""):
    assert 0 < at < 128
    return field(2, b"\x09" + struct.pack("<d", value) + bytes([0x10, at]) + more)


NAME = label("__name__", "up")
LABELS = NAME + label("job", "a")


def series(labels=LABELS, samples=None, more=b""):
    return field(1, labels + (sample() if samples is None else samples) + more)


GOOD = series()


def post(receiver, message=GOOD, path=PATH, headers=AGENT, compress=snappy.compress):
    connection = http.client.HTTPConnection("127.0.0.1", receiver.port, timeout=30)
    try:
        connection.request("POST", path, compress(message), headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize("name", ["up", "Up_9", "_up", ":up:", "a:b_C9"])
def test_a_good_request_is_taken(receiver, name):
    assert post(receiver, series(label("_A9z", "any value: ü") + label("__name__", name))) == (204, "")
    assert receiver.series(name) == [(100, 1.0)]
    assert post(receiver, series(label("_A9z", "any value: ü") + label("__name__", name))) == (204, "")
    assert (receiver.replays, receiver.errors) == (1, [])


BAD = {
    "a metric's name with a dash": (series(label("__name__", "my-app")), "not a metric's name"),
    "a metric's name that begins with a digit": (series(label("__name__", "9up")), "not a metric's name"),
    "a metric's name with a line end": (series(label("__name__", "up\n")), "not a metric's name"),
    "a label's name with a colon": (series(NAME + label("a:b", "c")), "not a label's name"),
    "a label's name that begins with a digit": (series(label("9a", "c") + NAME), "not a label's name"),
    "a label without a value": (series(NAME + label("a", "")), "an empty value"),
    "no name": (series(label("job", "a")), "no name"),
    "labels that are not sorted": (series(label("job", "a") + NAME), "not sorted"),
    "a label twice": (series(NAME + label("a", "b") + label("a", "c")), "is twice"),
    "bytes that are no text": (series(NAME + field(1, field(1, b"a") + field(2, b"\xff"))), "not a request"),
    "no samples": (series(samples=b""), "no samples"),
    "a series twice": (GOOD + GOOD, "a series is twice"),
    "nothing": (b"", "neither series nor metadata"),
    "samples out of order": (series(samples=sample(at=20) + sample(at=10)), "out of order"),
    "two values at a time": (series(samples=sample(1) + sample(2)), "out of order"),
    "an unknown field of the request": (GOOD + UNKNOWN, "fields that the protocol does not have"),
    "an unknown field of a sample": (series(samples=sample(more=UNKNOWN)), "fields that the protocol does not have"),
    "half a message": (GOOD[:-1], "not a request"),
}


def refused(receiver, why, *arguments, **options):
    code, text = post(receiver, *arguments, **options)
    assert code == 400
    assert why in text
    assert receiver.errors == [text]
    assert receiver.all() == {}


@pytest.mark.parametrize("message, why", BAD.values(), ids=BAD.keys())
def test_a_bad_message_is_refused(receiver, message, why):
    refused(receiver, why, message)


@pytest.mark.parametrize("path", ["/api/v1/write/", "/api/v1/write?a=b"])
def test_another_path_is_refused(receiver, path):
    refused(receiver, f"path {path}", path=path)


@pytest.mark.parametrize("header", AGENT)
def test_a_wrong_header_is_refused(receiver, header):
    refused(receiver, f"header {header}: 'other'", headers={**AGENT, header: "other"})


def test_what_is_not_compressed_is_refused(receiver):
    refused(receiver, "not a request", compress=bytes)


def test_a_bad_series_spoils_the_request(receiver):
    refused(receiver, "not a metric's name", GOOD + series(label("__name__", "my-app")))
