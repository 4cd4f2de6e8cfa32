"""The wheel of the Python package, built once for a run of the tests, by the first xdist worker that needs it."""

import contextlib
import fcntl
import subprocess
from pathlib import Path

from conftest import PYTHON, environment
from servers import ROOT

OFFLINE = ("--no-build-isolation", "--no-deps", "--no-index")


def run(*command, **extra):
    """Runs a command in the environment of builds, and returns its output."""
    result = subprocess.run([str(word) for word in command], env=build_environment(), capture_output=True, text=True, timeout=600, **extra)
    assert result.returncode == 0, f"{command}:\n{result.stdout[-4000:]}\n{result.stderr[-4000:]}"
    return result.stdout


def build_environment(**extra):
    """Uses ccache and a unity build, to save time."""
    cache = {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1"}
    return environment(**cache, CMAKE_ARGS="-DPERSIA_METRICS_UNITY=ON", **extra)


@contextlib.contextmanager
def build_lock():
    """A lock for the build: setup.py builds in one folder of the clone."""
    (ROOT / "build").mkdir(exist_ok=True)
    with open(ROOT / "build/wheel.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Wheel:
    """`python` is the interpreter that built it, which has pip and Debian's setuptools; `file` is the wheel."""

    def __init__(self, shared):
        """`shared`: a directory of this run, in which the wheel is built if it is not there."""
        venv, dist = Path(shared) / "wheel_builder", Path(shared) / "wheel"
        self.python = venv / "bin/python"
        with build_lock():
            if not dist.is_dir():
                run(PYTHON, "-m", "venv", "--clear", "--system-site-packages", venv)
                run(self.python, "-m", "pip", "wheel", *OFFLINE, "-w", venv / "dist", ROOT / "lib/python", cwd=venv)
                (venv / "dist").rename(dist)  # atomic
        (self.file,) = dist.glob("*.whl")
