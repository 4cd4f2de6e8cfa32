"""A Debian in a directory, in which commands run as in a container."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

_SUITES = {"12": "bookworm"}


def _mirror(suite):
    """The mirror from which this machine gets the suite."""
    targets = subprocess.run(["apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)"], capture_output=True, text=True)
    found = [line.split()[1] for line in targets.stdout.splitlines() if line.split()[0] == suite]
    return found[0] if found else "http://deb.debian.org/debian" + ("-security" if suite.endswith("-security") else "")


class Debian:
    def __init__(self, path, suite_name):
        self.path, self.suite_name = path, suite_name

    @staticmethod
    def suite(image):
        """The suite of an image's tag: debian:12.11-slim is bookworm."""
        name, _, tag = image.partition(":")
        if name != "debian" or tag.split(".")[0] not in _SUITES:
            raise ValueError(f"no way to make {image} without Docker")
        return _SUITES[tag.split(".")[0]]

    @classmethod
    def bootstrap(cls, path, image):
        suite = cls.suite(image)
        mirror = _mirror(suite)
        print(f"==> debootstrap {suite} from {mirror}", flush=True)
        _quietly(["debootstrap", "--variant=minbase", suite, path, mirror])
        made = cls(path, suite)
        # As in the official images.
        sources = [f"deb {_mirror(part)} {part} main\n" for part in (suite, f"{suite}-updates", f"{suite}-security")]
        (path / "etc/apt/sources.list").write_text("".join(sources))
        settings = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout
        kept = [line for line in settings.splitlines() if line.startswith(("Acquire::http", "Acquire::https", "Acquire::Check-"))]
        (path / "etc/apt/apt.conf.d/99host").write_text("\n".join(kept) + "\n")
        shutil.copy("/etc/resolv.conf", path / "etc/resolv.conf")
        return made

    def copy(self, path):
        """A copy of this Debian, which is not entered yet."""
        _quietly(["cp", "-a", self.path, path])
        made = Debian(path, self.suite_name)
        made._enter()
        return made

    def _enter(self):
        _mount("--bind", self.path, self.path)
        _mount("-t", "proc", "proc", self.path / "proc")
        _mount("--rbind", "/dev", self.path / "dev")
        cache = subprocess.run(["ccache", "--get-config", "cache_dir"], capture_output=True, text=True).stdout.strip()
        if cache:
            (self.path / "ccache").mkdir()
            Path(cache).mkdir(parents=True, exist_ok=True)
            _mount("--bind", cache, self.path / "ccache")

    def remount_read_only(self, writable):
        """As `docker run --read-only` with a tmpfs at each of `writable`, and without the compiler's cache."""
        if (self.path / "ccache").is_dir():
            subprocess.run(["umount", self.path / "ccache"], check=True)
            (self.path / "ccache").rmdir()
        _mount("-o", "remount,bind,ro", self.path)
        for place in writable:
            _mount("-t", "tmpfs", "-o", "mode=1777", "tmpfs", self.path / place.lstrip("/"))

    def run(self, words, directory="/", user="0:0", environment=None, code=0):
        """Runs a command in it, without any capability if not as root, and returns its output."""
        # Only the environment of an image's steps, and the compiler cache, which changes their duration but not their result.
        env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", **(environment or {})}
        if (self.path / "ccache").is_dir():
            env |= {"CCACHE_DIR": "/ccache", "CCACHE_BASEDIR": "/src", "CCACHE_NOHASHDIR": "1", "CMAKE_CXX_COMPILER_LAUNCHER": "ccache"}
        within = ["sh", "-c", 'cd "$0" && exec "$@"', directory, *words]
        drop = []
        if user != "0:0":
            uid, gid = user.split(":")
            drop = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", "--no-new-privs"]
            drop += ["--inh-caps=-all", "--bounding-set=-all"]
        result = subprocess.run(
            ["chroot", self.path, *drop, *within],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=3600,
        )
        if result.returncode != code:
            sys.exit(f"image-check: {words} ended with {result.returncode}, not {code}:\n{result.stdout[-6000:]}")
        return result.stdout


def _mount(*words):
    subprocess.run(["mount", *words], check=True)


def _quietly(words):
    result = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "LC_ALL": "C"})
    if result.returncode != 0:
        sys.exit(f"image-check: {words} failed:\n{result.stdout[-3000:]}")
