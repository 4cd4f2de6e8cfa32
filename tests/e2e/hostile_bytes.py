"""Files that others may have written into a job's directory: segments and state. segment_format.md, journal.h and state_format.md have the grammars."""

import hashlib
import struct
import zlib

_PAGE = 4096
CELLS = 512  # of a chunk
_IDENTITY, _FAMILY, _SERIES = 1, 2, 3
_COUNTER, _GAUGE = 1, 2
ONES = struct.pack("<2Q", 1, 0) * (CELLS // 2)  # counters of a chunk, each 1


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<I", len(data)) + data


def pairs(labels):
    return b"".join(text(name) + text(value) for name, value in labels)


def record(kind, payload):
    size = 8 + len(payload)
    return struct.pack("<IHH", size + -size % 8, kind, 0) + payload + bytes(-size % 8)


def identity(replica, job):
    return record(_IDENTITY, struct.pack("<iIII", replica, 0, 0, 0) + text(job) + text("") + text("trainer"))


def gauges(count, labels=(), per_chunk=CELLS):
    """Records of a family `hostile_gauge` and so many series, each with the label `number` and more, and the number of their chunks."""
    family = record(_FAMILY, struct.pack("<BBHI", _GAUGE, 1, 0, 0) + text("hostile") + text("gauge") + text("") + text(""))

    def one(number):
        slot = (number // per_chunk + 1) * CELLS + number % per_chunk
        return record(_SERIES, struct.pack("<4I", 0, slot, 1 + len(labels), 0) + pairs([("a_number", f"{number}"), *labels]))

    return family + b"".join(map(one, range(count))), -(-count // per_chunk)


def counters(count):
    """The same for a family `honest_counter`, without further labels."""
    family = record(_FAMILY, struct.pack("<BBHI", _COUNTER, 0, 0, 0) + text("honest") + text("counter") + text("") + text(""))
    series = (record(_SERIES, struct.pack("<4I", 0, CELLS + 2 * n, 1, 0) + pairs([("number", f"{n:040}")])) for n in range(count))
    return family + b"".join(series), -(-2 * count // CELLS)


def segment(path, records, chunks=1, events=(), cells=bytes(8 * CELLS)):
    """A segment without a writer. `events`: slots of its ring. `cells`: of each chunk."""
    used = len(records)
    directory = _PAGE + -(-used // _PAGE) * _PAGE
    ring = directory + -(-8 * chunks // _PAGE) * _PAGE
    first = ring + -(-1024 * len(events) // _PAGE) * _PAGE
    end = first + chunks * _PAGE
    places = (_PAGE, directory - _PAGE, directory, chunks, ring, len(events), first)
    start = struct.pack("<8sHHI16sQIIQQQ", b"PRSMSEG\n", 1, 0, 296, hashlib.blake2b(path.name.encode(), digest_size=16).digest(), end, 999999, 0, 1, 1, 1)
    counts = struct.pack("<3Q", used, chunks, len(events)) + bytes(16 * 8 + 16)
    draft = path.with_suffix(".draft")
    with open(draft, "wb") as file:
        file.write(start + struct.pack("<7Q", *places) + counts)
        for at, data in (
            (_PAGE, records),
            (directory, b"".join(struct.pack("<II", 0, number + 1) for number in range(chunks))),
            (ring, b"".join(events)),
            (first, cells * chunks),
        ):
            file.seek(at)
            file.write(data)
    draft.rename(path)


def event(ticket, entries):
    """A slot of a ring, with so many entries of metadata without key and value."""
    payload = text("t") + text("n") + (text("") + b"\0") * entries
    slot = struct.pack("<QQIHH", 2 * ticket + 2, 1, 16 + len(payload), entries, 0) + payload
    return slot + bytes(1024 - len(slot))


def _journal_record(tag, payload):
    head = struct.pack("<II", len(payload), tag)
    return head + struct.pack("<I", zlib.crc32(payload, zlib.crc32(head))) + payload


def journal(path, magic, *records):
    """A journal of (tag, payload)."""
    batch = b"".join(_journal_record(*one) for one in records)
    mark = _journal_record(0xFFFF, struct.pack("<QI", 16, len(batch)))
    path.write_bytes(magic + struct.pack("<II", 1, 0) + mark + batch)


def state(path, run, *records):
    journal(path, b"PRSMSTA\n", (1, text(run) + bytes(8)), *records)


def group(run, job, series):
    """The payload of a record of the state with the sums of ended processes: so many counters."""
    family = struct.pack("<BBBHI", 1, 1, 0, 0, 0) + text("hostile") + text("counter") + text("") + text("")
    head = text(job) + text(run) + text("trainer") + struct.pack("<3I", 0, 0, 0) + bytes(17 * 8)
    head += struct.pack("<I", 1) + family + bytes(8) + text("id") + bytes(8)

    def one(number):
        return struct.pack("<IIQI", 0, 0, 1, 1) + text(text("number") + text(f"{number}")) + struct.pack("<BQI", 0, 5, 0)

    return head + struct.pack("<I", series) + b"".join(map(one, range(series)))


def snappy(start, repeated, size):
    """A block of Snappy's format that becomes `start`, and then up to `size` the last `repeated` bytes of it, again and again."""
    block = bytearray()
    left = size
    while left > 127:
        block.append(left & 127 | 128)
        left >>= 7
    block += bytes([left, 63 << 2]) + struct.pack("<I", len(start) - 1) + start
    return bytes(block) + (bytes([63 << 2 | 2]) + struct.pack("<H", repeated)) * ((size - len(start)) // 64)
