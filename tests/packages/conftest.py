"""The fixtures and needs of the end-to-end tests that these have, too."""

import importlib.util
import sys
from pathlib import Path

_E2E = Path(__file__).resolve().parents[1] / "e2e"
sys.path[:0] = [str(_E2E)]

_spec = importlib.util.spec_from_file_location("e2e_fixtures", _E2E / "conftest.py")
_fixtures = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_fixtures)

environment, gateway, started = _fixtures.environment, _fixtures.gateway, _fixtures.started


def pytest_configure(config):
    config.option.strict_markers = True
    config.pluginmanager.register(_fixtures.needs)
