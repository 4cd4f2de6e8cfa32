"""The ranks' time and steps, by the workers' own ledgers, and what the exposition says of them."""

import itertools
import re
from collections import defaultdict, namedtuple

# `born`: when it made its ledger, which gives the lives of a rank their order: two may have started in the same hundredth of a second.
# `seen`: whether the agent certainly has all of it. Of a process that started while the directory was full it may have nothing.
Life = namedtuple("Life", "born started ended first before after seen")

_SERIES = re.compile(r"^(persia_rank_seconds_total|persia_rank_redone_steps_total|persia_rank_restarts_total)\{(.*)\} (\S+)$")
_LABEL = re.compile(r'(\w+)="([^"]*)"')
# Of the time of a rank. And the starts of processes are known to a hundredth of a second, to the agent and to the ledgers.
_TOLERANCE = 0.001
# Of the time of a rank: how much may be of lives and ends that the agent may not know.
_MOST_UNKNOWN = 0.05


class Ranks:
    """The lives of the processes of each rank."""

    def __init__(self, identities):
        self._lives = {identity: [] for identity in identities}

    def add(self, ledger):
        """Adds the ledger of a dead process, once. One that was forked is not the rank, and has no time."""
        identity = (ledger.role, ledger.replica)
        life = Life(*ledger.rank(), seen=ledger.certain)
        if identity in self._lives and life.started:
            self._lives[identity].append(life)

    def _sorted(self, identity):
        return sorted(self._lives[identity], key=lambda life: life.born)

    def redone(self, identity):
        """The least and the most steps that were trained again."""
        least = most = 0
        reached_least = reached_most = -1
        for life in self._sorted(identity):
            if life.before is not None:
                most += max(0, min(life.before, reached_most) + 1 - life.first)
                if life.seen and life.after is not None:
                    least += max(0, min(life.after, reached_least) + 1 - life.first)
                    reached_least = max(reached_least, life.after)
                reached_most = max(reached_most, life.before)
            if life.ended:  # the next one is a new program, if the agent knows this one
                reached_least = -1
                reached_most = -1 if life.seen else reached_most
        return least, most

    def seconds(self, identity):
        """The time from the first start to the last end, without that between the end of a process that ended in order and the next
        one; and how far the agent's may differ, since it does not know of some ends and lives."""
        lives = self._sorted(identity)
        total, unknown = lives[-1].ended - lives[0].started, 0.02
        if not lives[-1].seen:
            unknown += 5  # it is down until the agent ends
        is_awaited = False  # since a process that the agent knows has failed, all time counts
        for life, following in itertools.zip_longest(lives, lives[1:]):
            lived = (life.ended or following.started) - life.started
            if not life.seen:
                unknown += 0.02 if is_awaited else lived
            if life.ended and (life.first is None or not life.seen) and (life.seen or is_awaited):
                unknown += lived  # an agent that knows no phases of it counts it until it saw it last
            is_awaited = not life.ended and (is_awaited or life.seen)
            if life.ended and following:
                gap = following.started - life.ended
                total -= gap
                unknown += 0.01 if life.seen else abs(gap)
        return total, unknown


def parse(body):
    """By identity: the time of all buckets, by bucket, and the redone steps and restarts."""
    found = defaultdict(lambda: {"buckets": {}})
    for line in body.splitlines():
        match = _SERIES.match(line)
        if match:
            labels = dict(_LABEL.findall(match[2]))
            rank = found[labels["role"], int(labels["instance"].removeprefix("rep_"))]
            if match[1] == "persia_rank_seconds_total":
                rank["buckets"][labels["bucket"]] = float(match[3])
            else:
                rank[match[1]] = float(match[3])
    return found


def compare(body, ranks, identities):
    """The problems, and a line on what was compared."""
    found, wrong, said = parse(body), [], []
    for identity in identities:
        rank, name = found[identity], f"{identity[0]} rep_{identity[1]}"
        shown = sum(rank["buckets"].values())
        expected, unknown = ranks.seconds(identity)
        if unknown > _MOST_UNKNOWN * expected + 10:
            wrong.append(f"{name}: {unknown:.3f} s of its {expected:.3f} s are of lives and ends that the agent may not know: too many for a check")
        if abs(shown - expected) > _TOLERANCE * expected + unknown:
            wrong.append(f"{name}: its buckets are {shown:.3f} s, not {expected:.3f} s: {rank['buckets']}")
        redone, (least, most) = rank.get("persia_rank_redone_steps_total"), ranks.redone(identity)
        if redone is None or not least <= redone <= most:
            wrong.append(f"{name}: {redone} redone steps, not {least} to {most}")
        said.append(f"{name} {shown:.2f} s of {expected:.2f} s ({unknown:.2f} s unknown), {redone:.0f} redone steps of {least} to {most}" if redone is not None else name)
    return wrong, "; ".join(said)
