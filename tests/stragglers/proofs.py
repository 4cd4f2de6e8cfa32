"""The proofs: delays, none, and hangs, each in a job that goes on. Each returns its misses as sentences."""

import math
import time

from controls import PHASES
from slow_job import HANG_AFTER, Hanging, delay, hang, settle


class Tally:
    """Cases of one kind, and what was wrong with them."""

    def __init__(self, name, show):
        self.name, self.cases, self.wrong_rank, self.wrong_phase, self.times, self._show = name, 0, [], [], [], show

    def add(self, case, rank_is_right, phase_is_right, took):
        self.cases += 1
        self.times.append(took)
        if not rank_is_right:
            self.wrong_rank.append(case)
            self._show(f"  MISSED {case}")
        elif not phase_is_right:
            self.wrong_phase.append(case)
            self._show(f"  another phase: {case}")

    def named(self):
        return self.cases - len(self.wrong_rank)

    def with_phase(self):
        return self.named() - len(self.wrong_phase)

    def __str__(self):
        times = sorted(self.times) or [0.0]
        median, most = times[len(times) // 2], times[-1]
        return f"{self.name}: {self.cases} cases, the rank named in {self.named()}, with its phase in {self.with_phase()}; after {median:.1f} s (median), {most:.1f} s (most)"


def delays(ranks, verdicts, random, count, pace, show):
    tally = Tally(f"delays, {verdicts.name}", show)
    for _ in range(count):
        rank, phase = random.randrange(len(ranks.controls)), random.choice(PHASES)
        part = math.exp(random.uniform(math.log(pace.least_delay), math.log(3)))
        found, took = delay(ranks, verdicts, rank, phase, part, pace.times)
        case = f"rank {rank} by {part:.0%} of a step in {phase}: found {found}"
        tally.add(case, found is not None and found[0] == rank, found == (rank, phase), took)
        settle(verdicts)
    return tally


def clean(ranks, verdicts, count, seconds, show):
    """Windows without a delay, of `seconds` each. A verdict is a miss."""
    tally = Tally(f"clean runs, {verdicts.name}", show)
    for _ in range(count):
        end, found = time.monotonic() + seconds, set()
        while time.monotonic() < end and not found:
            found = verdicts.stragglers() | verdicts.hangs()
            time.sleep(verdicts.interval / 2)
        tally.add(f"nothing was wrong: found {sorted(found)}", not found, True, seconds)
        if found:
            settle(verdicts)
    return tally


def hangs(ranks, verdicts, random, count, pace, show):
    """Named within two intervals of the time after which it is a hang, once, and taken back."""
    tally = Tally(f"hangs, {verdicts.name}", show)
    for number in range(count):
        rank, kind = random.randrange(len(ranks.controls)), Hanging.KINDS[number % len(Hanging.KINDS)]
        time.sleep(random.uniform(0, 2 * ranks.step_seconds))
        before = verdicts.reports_of_hangs()
        # The others have to come to `sync`, and the interval of the collection may have begun.
        in_time = pace.times * (HANG_AFTER + 2 * verdicts.interval + 4 * ranks.step_seconds)
        named, took = hang(ranks, verdicts, rank, kind, in_time + 5)
        settle(verdicts)
        reports = verdicts.reports_of_hangs() - before
        case = f"rank {rank}, {kind}: named {sorted(named)} after {took:.2f} s, reported {reports} times"
        tally.add(case, named == {rank} and reports == 1 and took <= in_time, True, took)
    return tally
