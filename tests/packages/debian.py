"""A plain Debian in a directory."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

SUITES = {"12": "bookworm", "13": "trixie"}
_CACHE = Path(__file__).resolve().parents[2] / "build/debian"


def _mirror(suite):
    """The mirror from which this machine gets the suite."""
    targets = subprocess.run(["apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)"], capture_output=True, text=True)
    found = [line.split()[1] for line in targets.stdout.splitlines() if line.split()[0] == suite]
    return found[0] if found else "http://deb.debian.org/debian" + ("-security" if suite.endswith("-security") else "")


def bootstrap(path: Path, release: str):
    """Makes Debian `release` ("12" or "13") in `path`, with the updates and the settings of the network of this machine.

    The minimal system is kept in build/debian, as debootstrap made it.
    """
    suite = SUITES[release]
    kept, new = _CACHE / f"{suite}.tar", _CACHE / f"{suite}.tar.{os.getpid()}"
    if kept.exists():
        path.mkdir(parents=True)
        _run(["tar", "-x", "--numeric-owner", "--xattrs", "-C", path, "-f", kept])
    else:
        _run(["debootstrap", "--variant=minbase", suite, path, _mirror(suite)])
        _CACHE.mkdir(parents=True, exist_ok=True)
        _run(["tar", "-c", "--numeric-owner", "--xattrs", "-C", path, "-f", new, "."])
        new.rename(kept)
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


def mount_kernel(path: Path):
    """Mounts what a running system has from the kernel. `path` becomes a mount point."""
    mount("--bind", path, path)
    mount("-t", "proc", "proc", path / "proc")
    mount("-t", "sysfs", "-o", "ro", "sysfs", path / "sys")
    mount("--rbind", "/dev", path / "dev")
    mount("-t", "tmpfs", "-o", "mode=1777", "tmpfs", path / "dev/shm")


def enter(path: Path):
    """Makes the mount point `path` the root of this mount namespace. Unlike in a chroot, programs can make namespaces there."""
    (path / "old").mkdir()
    os.chdir(path)
    subprocess.run(["pivot_root", ".", "old"], check=True)
    os.chdir("/")
    subprocess.run(["umount", "--lazy", "/old"], check=True)
    Path("/old").rmdir()


def _run(words, **environment):
    env = {**os.environ, "LC_ALL": "C", **environment}
    result = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    if result.returncode != 0:
        sys.exit(f"packages: {words} failed:\n{result.stdout[-3000:]}")
