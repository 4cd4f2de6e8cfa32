"""Builds a preset of CMakePresets.json into build/PRESET, through ccache where it is installed.

While ninja works, one line tells how far it is and which step has run for the longest. On a terminal it is written anew each second, elsewhere
a line is printed each minute. The complete output is in build/logs.
"""

import argparse
import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "build/logs"
_STEP = re.compile(r"^\[(\d+)/(\d+)\] (.*)$")
_OBJECT = re.compile(r"Building \S+ object (\S+?)/CMakeFiles/\S+?\.dir/(\S+)\.o$")
_SHOWN_LINES = 60  # of the log of a build that failed


def say(text):
    print(f"\033[1m==> {text}\033[0m" if sys.stdout.isatty() else f"==> {text}", flush=True)


def environment():
    """Clones in other folders share ccache's cache, also for what includes precompiled headers. Compilers use huge pages: a twentieth less time."""
    huge_pages = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
    if shutil.which("ccache") is None:
        return {**os.environ, **huge_pages}
    launchers = {f"CMAKE_{language}_COMPILER_LAUNCHER": "ccache" for language in ("C", "CXX")}
    settings = {"CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1", "CCACHE_SLOPPINESS": "pch_defines,time_macros"}
    return {**os.environ, **huge_pages, **launchers, **settings}


def options(preset, tests):
    """CMake's options that depend on the machine and on what is to be built."""
    # Sanitized modules cannot be imported: the interpreter would have to be started with the sanitizer's runtime.
    installed = ["dpkg-query", "-W", "-f=${db:Status-Status}", "python3-dev"]
    python = preset not in ("sanitize", "fuzz", "tsan") and subprocess.run(installed, capture_output=True, check=False).stdout == b"installed"
    # The clang build uses Debian's own civetweb, as a plain CMake build does.
    web_server = "" if preset == "clang" else ROOT / "build/civetweb"
    return [
        f"-DPERSIA_METRICS_BUILD_PYTHON={'ON' if python else 'OFF'}",
        f"-DPERSIA_METRICS_BUILD_TESTS={'ON' if tests else 'OFF'}",
        f"-DPERSIA_METRICS_CIVETWEB={web_server}",
    ]


class Progress:
    """What ninja's output tells of a build: steps that have ended, and those that run."""

    def __init__(self):
        self.ended = self.all = 0
        self._running = {}  # a step's text: when it began

    def add(self, line):
        """Takes one line. On a terminal, ninja prints a step when it begins and again when it has ended."""
        if not (step := _STEP.match(line)):
            return
        self.ended, self.all = int(step[1]), int(step[2])
        if self._running.pop(step[3], None) is None and step[3].startswith(("Building ", "Linking ")):
            self._running[step[3]] = time.monotonic()

    def text(self, seconds):
        longest = min(self._running, key=self._running.get, default="")
        step = _OBJECT.sub(r"\1: \2", longest)
        waits = f", {time.monotonic() - self._running[longest]:.0f} s in {step}" if longest else ""
        return f"{self.ended} of {self.all} steps, {seconds:.0f} s{waits}"


def build(command, log):
    """Runs ninja on a terminal of its own, because only there it tells which steps run. Returns its exit status."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 4096, 0, 0))  # ninja shortens what is longer than a line
    env = {**environment(), "TERM": "xterm", "NINJA_STATUS": "[%f/%t] "}
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal, env=env) as ninja:
        os.close(terminal)
        show(controller, log)
        return ninja.wait()


def show(output, log):
    """Copies the output to the log until it ends, and shows the progress."""
    progress, began, rest = Progress(), time.monotonic(), b""
    is_terminal = sys.stdout.isatty()
    interval = 1 if is_terminal else 60
    next_line = began + interval
    with open(log, "ab") as file:
        while True:
            if select.select([output], [], [], 0.5)[0]:
                try:
                    data = os.read(output, 65536)
                except OSError:  # the other end is closed
                    break
                if not data:
                    break
                *lines, rest = re.split(rb"[\r\n]+", rest + data)
                for line in lines:
                    text = re.sub(rb"\x1b\[[0-9;]*[A-Za-z]", b"", line)
                    file.write(text + b"\n" if text else b"")
                    progress.add(text.decode(errors="replace"))
            if time.monotonic() >= next_line:
                next_line += interval
                text = "    " + progress.text(time.monotonic() - began)
                print(f"\r{text[: shutil.get_terminal_size().columns - 1]}\033[K" if is_terminal else text, end="" if is_terminal else "\n", flush=True)
        file.write(rest)
    os.close(output)
    if is_terminal:
        print("\r\033[K", end="", flush=True)


def failed(command, log):
    lines = log.read_text(errors="replace").splitlines()
    # Ninja goes on until the steps that run have ended: the error may stand before their lines.
    first = next((number for number, line in enumerate(lines) if line.startswith("FAILED: ")), len(lines) - _SHOWN_LINES)
    print("\n".join(lines[max(first, 0) :][:_SHOWN_LINES]), file=sys.stderr)
    print(f"run: failed: {' '.join(command)}\nrun: complete output: {log}", file=sys.stderr)
    return 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("preset")
    parser.add_argument("targets", nargs="*", help="what is built (default: all)")
    parser.add_argument("--no-tests", action="store_true", help="configure without the tests")
    arguments = parser.parse_intermixed_args()
    LOGS.mkdir(parents=True, exist_ok=True)
    preset, began = arguments.preset, time.monotonic()
    say(f"building {preset} (log: build/logs/build-{preset}.log)")
    log = LOGS / f"configure-{preset}.log"
    configure = ["cmake", "--preset", preset, *options(preset, not arguments.no_tests)]
    with open(log, "wb") as file:
        if subprocess.run(configure, cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL, stdout=file, stderr=file, check=False).returncode:
            return failed(configure, log)
    log = LOGS / f"build-{preset}.log"
    log.unlink(missing_ok=True)
    compile_ = ["cmake", "--build", str(ROOT / "build" / preset), "-j", str(len(os.sched_getaffinity(0))), *(f"--target={target}" for target in arguments.targets)]
    if build(compile_, log):
        return failed(compile_, log)
    say(f"built {preset} in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
