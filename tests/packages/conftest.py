"""A plain Debian, the packages for it, and some fixtures of the end-to-end tests."""

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_E2E = Path(__file__).resolve().parents[1] / "e2e"
sys.path[:0] = [str(_E2E)]

_spec = importlib.util.spec_from_file_location("e2e_fixtures", _E2E / "conftest.py")
_fixtures = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_fixtures)

environment, gateway, started = _fixtures.environment, _fixtures.gateway, _fixtures.started


ROOT = Path(__file__).resolve().parents[2]
RELEASE = os.environ.get("PERSIA_TEST_DEBIAN")  # another Debian than this machine's, as __main__.py sets it
BUILT = ROOT / (f"build/package-{RELEASE}" if RELEASE else "build/package")
PROGRAMS = ROOT / "tests/packages/programs"
NAMES = ("libpersia-metrics-dev", "libpersia-metrics0.1", "persia-metrics-agent", "python3-persia-metrics")


def older(package, directory):
    """The package, with a lower version."""
    tree = directory / package.stem
    subprocess.run(["dpkg-deb", "--raw-extract", package, tree], check=True)
    control = tree / "DEBIAN/control"
    version = re.search(r"^Version: (.*)$", control.read_text(), re.M)[1]
    control.write_text(control.read_text().replace(version, f"{version}~older"))
    command = ["dpkg-deb", "--build", "--root-owner-group", "-Zgzip", "-z1", tree, directory]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(tree)


@pytest.fixture(scope="session")
def packages(tmp_path_factory):
    """A folder with the packages in new/, and the same packages of a lower version in old/."""
    folder = tmp_path_factory.mktemp("packages")
    folder.chmod(0o755)
    for part in ("new", "old"):
        (folder / part).mkdir()
    for name in NAMES:
        (package,) = BUILT.glob(f"{name}_*.deb")
        shutil.copy(package, folder / "new")
        older(package, folder / "old")
    shutil.copytree(PROGRAMS, folder / "programs")
    return folder


@pytest.fixture(scope="session")
def system(tmp_path_factory, packages):
    directory = tmp_path_factory.mktemp("system")
    for folder in (directory, directory.parent, packages.parent):
        folder.chmod(0o755)
    from system import System  # after this file has extended sys.path

    machine = System(directory, RELEASE or platform.freedesktop_os_release()["VERSION_ID"], packages)
    yield machine
    machine.stop()


def pytest_configure(config):
    config.option.strict_markers = True
    config.pluginmanager.register(_fixtures.needs)
