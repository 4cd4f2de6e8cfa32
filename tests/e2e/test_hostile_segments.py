"""Segments that lie, are cut, or shrink while they are read: named, left out, and nothing else is lost, in each mode of the agent."""

import os
import random
import signal
import struct

import pytest
from modes import BLOCKED, MODES, PLAIN, READERS

_PAGE = 4096
_ID = slice(0x10, 0x20)
_MAX_BYTES, _OFFSETS, _DESCRIPTORS_USED, _CHUNKS_USED = 0x20, 72, 128, 136
_NAME = "999999999-{}.seg"


def offsets(data):
    """Descriptors and their capacity, directory and its capacity, ring and its slots, chunks."""
    return struct.unpack_from("<7Q", data, _OFFSETS)


def put(data, at, value):
    struct.pack_into("<Q", data, at, value)
    return data


# A file of a job's directory, made of a real segment's bytes: the content, and the size to which it is extended by a hole.
HOSTILE = {
    "ends after its header": lambda data: (put(data, _DESCRIPTORS_USED, _PAGE)[:_PAGE], 0),
    "ends within its descriptors": lambda data: (put(data, _DESCRIPTORS_USED, offsets(data)[1])[: offsets(data)[0] + 100], 0),
    "ends before its directory": lambda data: (put(data, _CHUNKS_USED, 1000)[: offsets(data)[2]], 0),
    "ends before its chunks": lambda data: (put(data, _CHUNKS_USED, 2)[: offsets(data)[6]], 0),
    "descriptors are a hole": lambda data: (put(data, _DESCRIPTORS_USED, offsets(data)[1])[: offsets(data)[0]], 16 << 20),
    "random": lambda data: (random.Random(1).randbytes(1 << 16), 0),
    "empty": lambda data: (b"", 0),
    "zeros": lambda data: (b"", 1 << 20),
}


@pytest.fixture
def real_segment(lone_job):
    """The bytes of a living worker's segment, which has counted 7."""
    lone_job.worker().tell("count my_app batches 7")
    (path,) = lone_job.segments.glob("*.seg")
    return bytearray(path.read_bytes())


def check(samples, log):
    assert samples.one("my_app_batches") == 7
    assert "ended by signal" not in log
    assert not samples.one("persia_agent_restarts_total")


pytestmark = [pytest.mark.parametrize("mode", READERS), pytest.mark.parametrize("parent", [PLAIN, BLOCKED], ids=["plain", "signals blocked"])]


def test_files_that_are_no_good_segments_are_named_and_left_out(lone_job, real_segment, mode, parent):
    names = {}
    for number, (what, make) in enumerate(HOSTILE.items()):
        content, size = make(bytearray(real_segment))
        if len(content) >= 0x20:
            content = bytearray(content)
            content[_ID] = bytes([number + 1] * 16)
        names[what] = _NAME.format(f"{number + 1:02x}" * 8)
        with open(lone_job.segments / names[what], "wb") as file:
            file.write(content)
            file.truncate(max(size, len(content)))
    samples, log = MODES[mode](lone_job, parent).read()
    check(samples, log)
    refused = sum(value for (family, _), value in samples.items() if family == "persia_agent_segments_refused")
    assert refused == len(HOSTILE), log
    assert sum(name in log for name in names.values()) >= 5, f"one log message names a few: {log}"


@pytest.mark.parametrize("size", [0, _PAGE, 3 * _PAGE])
def test_a_living_segment_that_is_cut_costs_itself_alone(lone_job, real_segment, mode, parent, size):
    before = set(lone_job.segments.glob("*.seg"))
    other = lone_job.worker(replica=1)
    other.tell("count my_app rows 3")
    (path,) = set(lone_job.segments.glob("*.seg")) - before
    read = MODES[mode](lone_job, parent).read
    read()
    other.signal(signal.SIGSTOP)  # it would end by SIGBUS at its next count
    os.truncate(path, size)
    check(*read())
    other.kill()
