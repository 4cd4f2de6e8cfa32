"""Runs README's commands in a clone on a bare Debian: `sudo /usr/bin/python3 tests/bare [--release 12|13] [COMMAND...]`.

COMMAND is a command of `./run`, by default `demo`. A new minimal Debian gets a clone of this repository's commit, in namespaces that share only the
network with this machine; `./run` installs all that it needs. Prints the command's output, each line with the seconds since the start, and at last the
seconds until the demo's pages were open and the seconds in all. Exits with the command's status. Nothing is left but the output,
in build/logs, and the minimal system (tests/packages/debian.py).
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/packages"))
from debian import SUITES, bootstrap, enter, mount_kernel  # noqa: E402

_IN_NAMESPACES = "PERSIA_TEST_BARE_IN_NAMESPACES"
_UNSHARE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--ipc", "--uts")
_PAGES = "Open in a browser:"
# As a login of root has it.
_ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "USER": "root", "TERM": "dumb"}


def run(words, log):
    """Runs ./run in the clone. Returns its status, the seconds until the pages were open, if they were, and the seconds in all."""
    began, pages = time.monotonic(), None
    output = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(["./run", *words], cwd="/root/persia", env=_ENVIRONMENT, text=True, errors="replace", **output) as command:
        for line in command.stdout:
            seconds = time.monotonic() - began
            if pages is None and line.startswith(_PAGES):
                pages = seconds
            for stream in (log, sys.stdout):
                print(f"{seconds:7.1f} {line}", end="", file=stream, flush=True)
    return command.returncode, pages, time.monotonic() - began


def try_commit(directory, release, words):
    """In the namespaces: makes the Debian and the clone, and runs the command."""
    (ROOT / "build/logs").mkdir(parents=True, exist_ok=True)
    debian = directory / "root"
    bootstrap(debian, release)
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, debian / "root/persia"], check=True)
    mount_kernel(debian)
    with open(ROOT / f"build/logs/bare-{release}-{words[0]}.log", "w") as log:
        enter(debian)
        status, pages, seconds = run(words, log)
        opened = f"pages after {pages:.0f} s, " if pages is not None else ""
        for stream in (log, sys.stdout):
            print(f"bare Debian {release}: ./run {' '.join(words)}: {opened}{seconds:.0f} s in all, exit code {status}", file=stream)
    return status


def end(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # timeout sends it twice
    sys.exit(128 + signal.SIGTERM)


def main():
    parser = argparse.ArgumentParser(prog="tests/bare", description=__doc__.split("\n\n")[0])
    parser.add_argument("--release", choices=SUITES, default="13", help="of Debian; default: 13")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND", help="of ./run, with its arguments; default: demo")
    options = parser.parse_args()
    if inside := os.environ.get(_IN_NAMESPACES):
        return try_commit(Path(inside), options.release, options.command or ["demo"])
    directory = ROOT / f"build/bare/{os.getpid()}"
    directory.mkdir(parents=True)
    signal.signal(signal.SIGTERM, end)
    words = [*_UNSHARE, sys.executable, *sys.argv]
    namespaces = subprocess.Popen(words, env={**os.environ, _IN_NAMESPACES: str(directory)}, start_new_session=True)
    try:
        return namespaces.wait()
    except KeyboardInterrupt:
        return 130
    finally:
        namespaces.kill()  # the kernel then ends all in the namespaces
        namespaces.wait()
        shutil.rmtree(directory)


sys.exit(main())
