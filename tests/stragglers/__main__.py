"""Proves that stragglers and hangs are named: delays and hangs in a real job, and how many of them are found. See README.md."""

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "examples/demo"), str(ROOT / "tests")]

import hosts  # noqa: E402
import proofs  # noqa: E402
from slow_job import ALONE, BESIDE_OTHERS, INTERVAL, STEP_SECONDS, OneAgent, Ranks, settle  # noqa: E402
from test_seed import seed as seed_of_tests  # noqa: E402

RANKS = 4
# Of all cases, the least that must be named, and with their phase.
LEAST_NAMED, LEAST_WITH_PHASE = 0.99, 0.95
CLEAN_SECONDS = 10 * INTERVAL  # the chunks that a verdict needs


def show(text):
    print(text, flush=True)


def noise(ranks, seconds=2.0):
    """How much longer a sleep of a step's length takes than it should, on this machine beside the job: median and 95th percentile."""
    late, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        time.sleep(ranks.step_seconds)
        late.append((time.monotonic() - began) / ranks.step_seconds - 1)
    late.sort()
    return f"a sleep of a step is late by {late[len(late) // 2]:.1%} of it (median), {late[len(late) * 95 // 100]:.1%} (95 %); load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"


def prove(plan, source, directory):
    """With one agent. Returns whether enough is named."""
    segments = directory / "segments"
    segments.mkdir(mode=0o700)
    with OneAgent(directory, segments) as verdicts, Ranks(directory, lambda _: segments, RANKS) as ranks:
        verdicts.wait_until_it_answers()
        ranks.wait_until_they_train()
        show(f"{RANKS} ranks, steps of {STEP_SECONDS * 1000:.0f} ms, collections every {INTERVAL * 1000:.0f} ms; {noise(ranks)}")
        settle(verdicts)
        return judge(
            proofs.delays(ranks, verdicts, source, plan.delays, plan.pace, show),
            proofs.clean(ranks, verdicts, plan.clean, CLEAN_SECONDS, show),
            proofs.hangs(ranks, verdicts, source, plan.hangs, plan.pace, show),
        )


def judge(delays, clean, hangs):
    """Prints the tallies. Returns whether enough is named."""
    for tally in (delays, clean, hangs):
        if tally.cases:
            show(str(tally))
    allowed = int(delays.cases * (1 - LEAST_NAMED) + 1e-9)
    enough = len(delays.wrong_rank) <= allowed and delays.cases - delays.with_phase() <= int(delays.cases * (1 - LEAST_WITH_PHASE) + 1e-9)
    return enough and not clean.wrong_rank and not hangs.wrong_rank


def main():
    parser = argparse.ArgumentParser(prog="./run stragglers", description=__doc__)
    parser.add_argument("--seed", type=int, default=seed_of_tests(), metavar="S", help="draws the cases (default: PERSIA_TEST_SEED, else 1)")
    parser.add_argument("--delays", type=int, default=100, metavar="N", help="delays with one agent (default 100)")
    parser.add_argument("--clean", type=int, default=200, metavar="N", help="runs without a delay (default 200)")
    parser.add_argument("--hangs", type=int, default=50, metavar="N", help="hangs with one agent (default 50)")
    parser.add_argument("--host-delays", type=int, default=12, metavar="N", help="delays with an agent for each rank (default 12)")
    parser.add_argument("--host-hangs", type=int, default=6, metavar="N", help="hangs with an agent for each rank (default 6)")
    parser.add_argument(
        "--beside-others",
        dest="pace",
        action="store_const",
        const=BESIDE_OTHERS,
        default=ALONE,
        help="on a machine that has other work: delays of a step and more, in five times the time",
    )
    plan = parser.parse_args()
    if min(plan.delays, plan.clean, plan.hangs, plan.host_delays, plan.host_hangs) < 0:
        parser.error("numbers of cases must not be negative")
    seed = plan.seed
    show(f"seed {seed}")
    began, good = time.monotonic(), True
    for wanted, run in ((plan.delays + plan.clean + plan.hangs, prove), (plan.host_delays + plan.host_hangs, hosts.prove)):
        if wanted:
            with tempfile.TemporaryDirectory(prefix="persia-stragglers-", dir="/dev/shm") as directory:
                good = run(plan, random.Random(seed), Path(directory)) and good
    show(f"{'proved' if good else 'NOT PROVED'}, in {time.monotonic() - began:.0f} s; ./run stragglers --seed {seed} repeats it")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
