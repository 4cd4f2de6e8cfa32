"""Reads a segment: the values that a process exported, and the counts of those that it dropped. The grammar is in lib/segment_format.md."""

import array
import mmap
import struct

_PUBLISHED_AT = 72
_UNSET = 0x7FF4706572736961
_COUNTER, _GAUGE, _HISTOGRAM, _STREAM, _EVENT = range(1, 6)
_FAMILY, _SERIES = 2, 3
_CELLS_PER_CHUNK = 512
_STREAM_BUCKETS = 162
DROPS = (
    *("bad value", "bad name", "bad bounds", "type conflict", "segment full", "filesystem full", "event overrun", "event truncated"),
    *("out of memory", "file size limit", "descriptor limit", "file inaccessible"),
)


def _text(data, at):
    (size,) = struct.unpack_from("<I", data, at)
    return data[at + 4 : at + 4 + size].decode(), at + 4 + size


class Segment:
    """The values of a process, by key: see programs/own.h."""

    def __init__(self, path):
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
            self._read(path, data)

    def _read(self, path, data):
        assert data[:8] == b"PRSMSEG\n", f"{path} is no segment"
        (self.pid,) = struct.unpack_from("<I", data, 40)
        at, _, directory, _, _, _, chunks, used, chunks_used, _ = struct.unpack_from("<10Q", data, _PUBLISHED_AT)
        counts = struct.unpack_from("<16Q", data, 152)
        self.dropped = {DROPS[i] if i < len(DROPS) else f"reason {i}": count for i, count in enumerate(counts) if count}
        self.values = {}
        self._lanes = {}
        for i in range(chunks_used):
            lane, number = struct.unpack_from("<2I", data, directory + 8 * i)
            self._lanes.setdefault(number, []).append((lane, array.array("Q", data[chunks + 4096 * i : chunks + 4096 * (i + 1)])))
        families = []
        end = at + used
        while at < end:
            size, kind = struct.unpack_from("<IH", data, at)
            if kind == _FAMILY:
                families.append(self._family(data, at + 8))
            elif kind == _SERIES:
                self._series(data, at + 8, families)
            at += size

    @staticmethod
    def _family(data, at):
        kind, _, _, bounds = struct.unpack_from("<BBHI", data, at)
        group, at = _text(data, at + 8 + 8 * bounds)
        name, at = _text(data, at)
        return kind, bounds, f"{group}/{name}"

    def _series(self, data, at, families):
        family, slot, count, _ = struct.unpack_from("<4I", data, at)
        kind, bounds, key = families[family]
        at += 16
        labels = []
        for _ in range(count):
            name, at = _text(data, at)
            value, at = _text(data, at)
            labels.append(f"{name}={value}")
        self._values(kind, bounds, key + ("{" + ",".join(labels) + "}" if labels else ""), slot)

    def _cells(self, slot):
        """The cells of each lane from `slot` on."""
        return [(lane, cells[slot % _CELLS_PER_CHUNK :]) for lane, cells in self._lanes.get(slot // _CELLS_PER_CHUNK, ())]

    def _values(self, kind, bounds, key, slot):
        lanes = self._cells(slot)
        common = next((cells[0] for lane, cells in lanes if lane == 0), 0)

        def whole(first, count=1):
            return sum(sum(cells[first : first + count]) for _, cells in lanes)

        def real(at):
            return sum(struct.unpack("<d", struct.pack("<Q", cells[at]))[0] for _, cells in lanes)

        if kind == _COUNTER:
            self.values[key] = whole(0) + real(1)
        elif kind == _HISTOGRAM:
            self.values[key + ":count"], self.values[key + ":sum"] = whole(1, bounds + 1), real(0)
        elif kind == _EVENT:
            self.values[key + ":events"] = whole(1)
        elif kind == _STREAM:
            self.values[key + ":count"] = whole(3, 2 + _STREAM_BUCKETS)
            self.values[key + ":sum"] = real(1) + real(2)
        if kind in (_GAUGE, _STREAM) and common != _UNSET:
            self.values[key + (":last" if kind == _STREAM else "")] = struct.unpack("<d", struct.pack("<Q", common))[0]


def read_all(directory):
    """The segments of a directory, by process id."""
    return {segment.pid: segment for segment in map(Segment, sorted(directory.glob("*.seg")))}
