"""usage: tests/gate test | gate | night [--seed S] [SUITE ...]

Runs `./run test`, the gate (.ci/run) or `./run night`. All random tests draw from PERSIA_TEST_SEED: 1 for test and gate, unless it is set, and the date
for the night.
"""

import argparse
import os
import sys

import commands
import plans
from session import Session, Stop

_MINUTES = {"test": 60, "gate": 85, "night": 600}


def main():
    parser = argparse.ArgumentParser(prog="./run", usage=__doc__.split("\n", maxsplit=1)[0].removeprefix("usage: "))
    parser.add_argument("kind", choices=_MINUTES)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of the night: {', '.join(plans.NIGHT)} (default: all)")
    parser.add_argument("--seed", type=int, metavar="S")
    arguments = parser.parse_intermixed_args()
    kind = arguments.kind
    if unknown := [suite for suite in arguments.suites if kind != "night" or suite not in plans.NIGHT]:
        parser.error(f"unknown suite {unknown[0]!r} ({', '.join(plans.NIGHT)})")
    if kind == "gate":
        os.environ["PERSIA_TEST_EVERY_NEED"] = "1"  # a test that cannot run there is a failure
    seed = arguments.seed
    if seed is None:
        seed = int(os.environ.get("PERSIA_TEST_SEED") or (plans.seed_of_the_day() if kind == "night" else 1))
    os.environ["PERSIA_TEST_SEED"] = str(seed)
    commands.end_on_signals()
    session = Session(kind, seed, _MINUTES[kind] * 60)
    touched = frozenset()
    try:
        if kind == "night":
            plans.night(session, arguments.suites)
        elif kind == "gate":
            touched = plans.gate(session)
        else:
            plans.test(session)
    except Stop:
        pass
    return session.report(touched)


sys.exit(main())
