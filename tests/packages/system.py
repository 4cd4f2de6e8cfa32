"""A plain Debian with its own systemd, in namespaces. It has the host's network."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from servers import Process, wait_until

_BOOT = Path(__file__).with_name("boot.py")
_UNSHARE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--cgroup", "--ipc", "--uts")
_PATH = "PATH=/usr/sbin:/usr/bin:/sbin:/bin"


class System:
    def __init__(self, directory, release, packages):
        """Boots Debian `release`. `packages` is a folder that appears in it as /packages."""
        self._root = directory / "root"
        self._boot = Process([*_UNSHARE, sys.executable, _BOOT, self._root, release, packages], directory / "boot.log")
        try:
            wait_until(self._is_running, "the system to boot", 1500, interval=0.5)
        except TimeoutError as error:
            self.stop()
            raise RuntimeError(f"{error}\n{self._boot.output()[-4000:]}") from None

    def _is_running(self):
        if not self._boot.running():
            raise RuntimeError(f"it did not boot:\n{self._boot.output()[-4000:]}")
        (init,) = Path(f"/proc/{self._boot.pid}/task/{self._boot.pid}/children").read_text().split()
        if Path(f"/proc/{init}/comm").read_text() != "systemd\n":
            return False
        self._init = init
        return self.run("systemctl", "is-system-running", code=None).stdout in ("running\n", "degraded\n")

    def words(self, *command, user=None, env=()):
        """The words that run a command in it, as root or a user of it."""
        become = ["runuser", "-u", user, "--"] if user else []
        enter = ["nsenter", f"--target={self._init}", "--all"]
        return [*enter, "env", "-i", _PATH, "LC_ALL=C.UTF-8", *env, *become, *command]

    def run(self, *command, user=None, code=0, seconds=1500):
        """Runs a command in it. Any exit code is right if `code` is None."""
        words = self.words(*command, user=user)
        output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        done = subprocess.run(words, stdin=subprocess.DEVNULL, timeout=seconds, check=False, **output)
        assert code in (None, done.returncode), f"{command} ended with {done.returncode}:\n{done.stdout[-6000:]}"
        return done

    def out(self, *command, **options):
        """The output of a command, without the last line's end."""
        return self.run(*command, **options).stdout.rstrip("\n")

    def apt(self, *words):
        return self.run("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y", "--no-install-recommends", *words)

    def path(self, path):
        """The path by which the host reaches a file of it."""
        return Path(f"/proc/{self._init}/root") / str(path).lstrip("/")

    def stop(self):
        self._boot.kill()  # its namespaces end with it
        wait_until(lambda: not self._boot.group_members(), "the end of the system")
        if not os.path.ismount(self._root):
            shutil.rmtree(self._root, ignore_errors=True)
