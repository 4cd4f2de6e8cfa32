"""Fixtures of the crash tests."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "e2e"), str(Path(__file__).parents[2] / "examples/demo")]

import needs  # noqa: E402


def pytest_configure(config):
    config.option.strict_markers = True
    config.pluginmanager.register(needs)
