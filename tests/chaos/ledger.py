"""The workers' ledgers, and the samples that the gateway must have. The files' grammar is in worker/ledger.h."""

import array
import mmap
import struct
import subprocess
from collections import defaultdict, namedtuple
from fractions import Fraction

BORN, GROWING, COUNTING, REGISTERING, THREADS, FORKING, BUSY, ENDED = range(8)
_EXPORTING = 2
_ROUNDING = Fraction(1, 2**40)
_HEADER = struct.Struct("<8sIIIi32sIIIII")
_HEADER_BYTES = 4096
_STATE_AT, _FULL_SEEN_AT, _LOSSY_AT, _STOP_AT = (_HEADER.size - 4 * back for back in (4, 3, 2, 1))

_RANK = struct.Struct("<QQQQQQ")  # of a worker that numbers its steps
_RANK_AT = 80

# A cell of the ledgers. `part`: "value", "sum" or "bucket <bound>".
Cell = namedtuple("Cell", "kind metric labels part")


def describe(worker):
    """The cells, in order, as the worker lists them."""
    lines = subprocess.run([worker, "--describe"], capture_output=True, text=True, check=True).stdout.splitlines()
    cells = []
    for line in lines:
        kind, metric, labels, part = line.split("\t")
        pairs = frozenset(tuple(label.split("=", 1)) for label in labels.split(",") if label)
        cells.append(Cell(kind, metric, pairs, part))
    return cells


class Ledger:
    """One process's ledger, alive or not."""

    def __init__(self, path):
        self.path = path
        self.pid = int(path.stem)
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        magic, pid, self.slots, self.cells, self.replica, role, *_ = _HEADER.unpack_from(self._map)
        assert (magic, pid) == (b"CHLEDGER", self.pid), f"{path} is no ledger"
        self.role = role.rstrip(b"\0").decode()

    def _word(self, at):
        return struct.unpack_from("<I", self._map, at)[0]

    @property
    def exporting(self):
        return self._word(_STATE_AT - 4)

    @property
    def state(self):
        return self._word(_STATE_AT)

    @property
    def full_seen(self):
        return self._word(_FULL_SEEN_AT)

    @property
    def lossy(self):
        return self._word(_LOSSY_AT) != 0

    @property
    def certain(self):
        """Whether the agent certainly sees its segment."""
        return self.exporting == _EXPORTING and not self.lossy

    def rank(self):
        """Of a rank: when it made its ledger, started and ended, in seconds, and its first and last step, before and after the call;
        0 or None: none."""
        *times, first, before, after = _RANK.unpack_from(self._map, _RANK_AT)
        return *(time / 1e9 for time in times), *(step - 1 if step else None for step in (first, before, after))

    def ask_to_end(self):
        struct.pack_into("<I", self._map, _STOP_AT, 1)

    def columns(self):
        """For each used slot of a thread: its columns `before` and `after`, as arrays of integers."""
        words = array.array("Q", self._map[_HEADER_BYTES:])
        for start in range(0, len(words), 2 * self.cells):
            before, after = words[start : start + self.cells], words[start + self.cells : start + 2 * self.cells]
            if any(before):
                yield before, after

    def close(self):
        self._map.close()


def _double(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


class Totals:
    """The sum of all ledgers, for each identity and cell: the least and the most that the gateway may have."""

    def __init__(self, cells):
        self._cells = cells
        self._low = defaultdict(lambda: [0] * len(cells))
        self._high = defaultdict(lambda: [0] * len(cells))
        self._last = defaultdict(set)
        self._reals = [i for i, cell in enumerate(cells) if cell.kind == "real"]
        self._lasts = [i for i, cell in enumerate(cells) if cell.kind == "last"]
        self._free = [i for i, cell in enumerate(cells) if cell.kind == "droppable"]
        self.processes = 0
        self.unfinished_calls = 0
        self.calls_of_one_thread = 0  # the cells that differ in one slot are those of one call

    def add(self, ledger):
        """Adds the ledger of a dead process, once."""
        self.processes += 1
        identity = (ledger.role, ledger.replica)
        low, high = self._low[identity], self._high[identity]
        # A process that could not export at first tries again.
        may_drop = ledger.lossy or ledger.exporting != _EXPORTING
        for before, after in ledger.columns():
            for cell in self._lasts:
                self._last[identity, cell] |= {_double(before[cell]), _double(after[cell])}
                before[cell] = after[cell] = 0
            reals = [(cell, Fraction(_double(before[cell])), Fraction(_double(after[cell]))) for cell in self._reals]
            differing = sum(map(int.__ne__, before, after))
            self.unfinished_calls += differing > 0
            self.calls_of_one_thread = max(self.calls_of_one_thread, differing)
            for cell, most, least in reals:
                before[cell] = after[cell] = 0
                # A thread that has no lane for a while adds to two cells, which rounds in another way than one.
                high[cell] += most * (1 + _ROUNDING) if may_drop else most
                low[cell] += 0 if may_drop else least
            high[:] = [a + b for a, b in zip(high, before)]
            if not may_drop:
                low[:] = [a + b for a, b in zip(low, after)]
        for cell in self._free:
            low[cell] = 0

    def expected(self):
        """(metric, labels as a frozenset) -> (least, most) as exact numbers, for all identities."""
        scale = [Fraction(1, 1024) if cell.kind == "1024th" else 1 for cell in self._cells]
        bounds = {}
        for identity in self._high:
            role, replica = identity
            own = frozenset({("role", role), ("instance", f"rep_{replica}")})
            sides = ([value * by for value, by in zip(side[identity], scale)] for side in (self._low, self._high))
            for at, both in self._samples(list(zip(*sides))):
                bounds[at[0], at[1] | own] = both
        return bounds

    def _samples(self, values):
        """Converts the cells' values to samples: buckets are cumulative, and the last one is the count."""
        below = (0, 0)
        for cell, both in zip(self._cells, values):
            if cell.part == "value" and cell.kind != "last":
                yield (cell.metric, cell.labels), both
            elif cell.part == "sum":
                yield (cell.metric + "_sum", cell.labels), both
            elif cell.part.startswith("bucket"):
                below = tuple(a + b for a, b in zip(below, both))
                bound = float(cell.part.split()[1])
                yield (cell.metric + "_bucket", cell.labels | {("le", bound)}), below
                if bound == float("inf"):
                    yield (cell.metric + "_count", cell.labels), below
                    below = (0, 0)

    def gauges(self):
        """(metric, labels) -> the last value of each process of the identity."""
        for (identity, cell), values in self._last.items():
            role, replica = identity
            labels = self._cells[cell].labels | {("role", role), ("instance", f"rep_{replica}")}
            yield (self._cells[cell].metric, labels), values
