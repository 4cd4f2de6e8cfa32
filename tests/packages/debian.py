"""A plain Debian in a directory."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

SUITES = {"12": "bookworm", "13": "trixie"}


def _mirror(suite):
    """The mirror from which this machine gets the suite."""
    targets = subprocess.run(["apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)"], capture_output=True, text=True)
    found = [line.split()[1] for line in targets.stdout.splitlines() if line.split()[0] == suite]
    return found[0] if found else "http://deb.debian.org/debian" + ("-security" if suite.endswith("-security") else "")


def bootstrap(path: Path, release: str):
    """Makes Debian `release` ("12" or "13") in `path`, with the updates and the settings of the network of this machine."""
    suite = SUITES[release]
    _run(["debootstrap", "--variant=minbase", suite, path, _mirror(suite)])
    sources = [f"deb {_mirror(part)} {part} main\n" for part in (suite, f"{suite}-updates", f"{suite}-security")]
    (path / "etc/apt/sources.list").write_text("".join(sources))
    settings = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout
    kept = [line for line in settings.splitlines() if line.startswith(("Acquire::http", "Acquire::https", "Acquire::Check-"))]
    (path / "etc/apt/apt.conf.d/99host").write_text("\n".join(kept) + "\n")
    shutil.copy("/etc/resolv.conf", path / "etc/resolv.conf")


def run_in(path: Path, script: str):
    """Runs a shell script as root in the Debian in `path`."""
    _run(["chroot", path, "sh", "-c", script], PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME="/root")


def mount(*words):
    subprocess.run(["mount", *words], check=True)


def _run(words, **environment):
    env = {**os.environ, "LC_ALL": "C", **environment}
    result = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    if result.returncode != 0:
        sys.exit(f"packages: {words} failed:\n{result.stdout[-3000:]}")
