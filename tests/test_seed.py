"""The seed of random tests: PERSIA_TEST_SEED, an unsigned number, 1 by default, so that a run of the tests is a function of the commit."""

import os


def seed():
    return int(os.environ.get("PERSIA_TEST_SEED") or 1)
