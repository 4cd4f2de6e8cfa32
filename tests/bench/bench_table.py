"""The table's measurements, peers, limits and output."""

import collections.abc
import dataclasses
import statistics

median = statistics.median
least = min


@dataclasses.dataclass
class Demand:
    """One limit on a row.

    kind: "at most" and "at least" apply to the row's own number, "share of" to its ratio to the peer's, and "times" to the inverse
    ratio, or to the ratio if more is better.

    undisturbed, for rows of two threads that share a metric: two measurements, of one thread, and of two threads that share nothing.
    Other virtual machines on the host's processor slow both kinds of two threads alike. So the row's own number is corrected by the
    ratio of one thread's minimum to the median of two threads that share nothing.
    peer_by: the statistic of the peer, if it is not the row's.
    """

    kind: str
    limit: float
    peer: str = ""
    undisturbed: tuple = ()
    peer_by: collections.abc.Callable | None = None

    def of(self, row, results):
        """The row's own number, and the peer's or None."""
        ours = row.judged_by(results[row.ours])
        if self.undisturbed:
            alone, apart = self.undisturbed
            ours *= least(results[alone]) / median(results[apart])
        return ours, (self.peer_by or row.judged_by)(results[self.peer]) if self.peer else None


@dataclasses.dataclass
class Row:
    """A line of the table. `ours`, `beside` and peers name measurements.

    Limits apply to the statistic `judged_by`, of ours and of the peer's alike. It is the minimum for work of constant duration, which
    other virtual machines on the host's processor can only lengthen.
    """

    what: str
    ours: str
    unit: str
    demands: list
    more_is_better: bool = False
    beside: tuple = ()  # peers that are shown without a limit
    judged_by: collections.abc.Callable = median

    def peers(self):
        demanded = (name for demand in self.demands for name in (demand.peer, *demand.undisturbed) if name)
        return list(dict.fromkeys([*self.beside, *demanded]))

    def names(self):
        return [self.ours, *self.peers()]


def number(value):
    """Three significant digits, without an exponent."""
    if value == 0:
        return "0"
    magnitude = abs(value)
    for digits, least in ((0, 100), (1, 10), (2, 1), (3, 0.1)):
        if magnitude >= least:
            return f"{value:,.{digits}f}"
    return f"{value:.2g}"


def spread(values):
    """The median, and the least and the most."""
    return f"{number(median(values))} ({number(min(values))} to {number(max(values))})"


@dataclasses.dataclass
class Verdict:
    demand: Demand
    reached: float

    @property
    def holds(self):
        return self.reached >= self.demand.limit if self.demand.kind in ("at least", "times") else self.reached <= self.demand.limit

    def text(self, unit):
        demand = self.demand
        label = demand.peer.rpartition("/")[2]
        reached, limit = number(self.reached), number(demand.limit)
        text = {
            "at most": f"at most {limit} {unit}",
            "at least": f"at least {limit} {unit}",
            "share of": f"**{reached}** of {label} (at most {limit})",
            "times": f"**{reached} times** {label} (at least {limit})",
        }[demand.kind]
        return text if self.holds else f"{text} **MISSED**"


def judge(row, results):
    """A verdict on each demand of a row. `results`: lists of numbers by name."""
    verdicts = []
    for demand in row.demands:
        ours, peer = demand.of(row, results)
        if peer is None:
            verdicts.append(Verdict(demand, ours))
        elif demand.kind == "share of":
            verdicts.append(Verdict(demand, ours / peer))
        else:
            verdicts.append(Verdict(demand, ours / peer if row.more_is_better else peer / ours))
    return verdicts


def lines(rows, results):
    """The table in Markdown."""
    yield "| what | ours | beside it | verdict |"
    yield "|---|---|---|---|"
    for row in rows:
        beside = "; ".join(f"{peer.rpartition('/')[2]}: {spread(results[peer])}" for peer in row.peers())
        verdicts = "; ".join(verdict.text(row.unit) for verdict in judge(row, results))
        yield f"| {row.what} | {spread(results[row.ours])} {row.unit} | {beside} | {verdicts} |"
