"""The order of tests, from the seed, to show a test that depends on another. The tests of a module stay together."""

import os
import random


def pytest_report_header():
    return f"order of tests: PERSIA_TEST_SEED={_seed()}"


def _seed():
    return os.environ.get("PERSIA_TEST_SEED") or "1"


def pytest_collection_modifyitems(items):
    shuffled = random.Random(_seed())
    places = {module: shuffled.random() for module in dict.fromkeys(item.path for item in items)}
    shuffled.shuffle(items)
    items.sort(key=lambda item: places[item.path])
