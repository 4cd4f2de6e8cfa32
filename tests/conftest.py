"""Of all tests in Python: they can import test_seed, and with PERSIA_TEST_CASES=FILE in the environment, a session appends its results to that file."""

import os
import sys
from pathlib import Path

TESTS = Path(__file__).parent
sys.path.append(str(TESTS))
sys.path.append(str(TESTS / "gate"))
import results  # noqa: E402


def pytest_configure(config):
    results.end_fixtures_on_sigterm()
    file = os.environ.get("PERSIA_TEST_CASES")
    # Of a session of xdist, only the first process knows all results.
    if file and not hasattr(config, "workerinput"):
        config.pluginmanager.register(results.Recorder(file))
