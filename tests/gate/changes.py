"""Which files the change that is tested touches: a function of the commit.

The change is what lies between HEAD and its base: PERSIA_GATE_BASE, else the newest commit that is four hours older than HEAD.
"""

import os
import subprocess

import commands

_HOURS = 4
# The parts of the night that guard what no other test of the gate looks at, by what they guard.
NIGHT_PARTS = {
    "boards": ("dashboards/", ".ci/dashboards/"),
    "manifests": ("config/kubernetes/", ".ci/kubernetes/"),
    "rules": ("config/prometheus/", "tests/e2e/test_prometheus_config.py", "tests/e2e/test_alert_matrix.py"),
    "docker": ("agent/Dockerfile", "agent/healthcheck.sh", ".dockerignore", "docker-compose.yml", "config/compose/", "tests/docker/", ".ci/docker_engine"),
    "packages": ("packaging/debian/", "packaging/build", "tests/packages/"),
}


def _git(*words):
    return subprocess.run(("git", *words), cwd=commands.ROOT, capture_output=True, text=True, check=True).stdout.strip()


def base():
    """A commit, or "" if the repository has none so old."""
    if given := os.environ.get("PERSIA_GATE_BASE"):
        return given
    head = int(_git("log", "-1", "--format=%ct"))
    return _git("rev-list", "-1", f"--before={head - _HOURS * 3600}", "HEAD")


def files():
    """The names of the files that the change touches: all, if the repository begins with it, as a shallow clone may."""
    begin = base()
    return _git("diff", "--name-only", begin, "HEAD").splitlines() if begin else _git("ls-files").splitlines()


def folders(names):
    """As cases name what they guard: `agent/net`, `lib`, a folder of tests, or a module of tests."""
    return {folder for name in names for folder in _folders(name)}


def _folders(name):
    parts = name.split("/")
    yield name
    if parts[0] == "lib":
        yield "lib"
    elif parts[0] == "tests":
        yield "/".join(parts[: 3 if parts[1] == "unit" else 2])
    else:
        yield "/".join(parts[:2])


def night_parts(names):
    """Of a change whose begin is not known, none: the night runs them."""
    if not base():
        return []
    return [part for part, begins in NIGHT_PARTS.items() if any(name.startswith(begins) for name in names)]
