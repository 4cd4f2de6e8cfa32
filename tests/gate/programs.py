"""Runs programs of GoogleTest, in shards, several at a time, and tells each case's outcome from their output.

A program's cases run in an order that the seed gives. A case that ends its process is a crash; the cases after it have not run.
"""

import concurrent.futures
import os
import platform
import re
import subprocess
import time
from pathlib import Path

import commands
from results import Case

# After what a case has printed without an end of line. What a value parameter prints may take several lines.
_ENDED = re.compile(r"\[ +(OK|FAILED|SKIPPED) +\] ([^\s,]+)(?:, where .*| \((\d+) ms\)$)")
_BEGAN = re.compile(r"^\[ RUN +\] (\S+)$")
_REPORT = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error: |SUMMARY: \w+Sanitizer")
_HUNG = "has not ended after"
_RAN = "Global test environment tear-down"  # printed at the end of each run
_CASES_OF_A_SHARD = 30
_SECONDS_OF_A_PROGRAM = 1200
_PERSONALITY = ["setarch", platform.machine(), "-R"]  # ThreadSanitizer of GCC 12 does not work with address space randomization


def shuffle_seed(seed):
    """GoogleTest takes 1 to 99999."""
    return seed % 99999 + 1


def found(preset, without=()):
    """The programs of a preset's unit tests that are built, as tests/unit/CMakeLists.txt lists them, without those with one of the labels."""
    listed = commands.ROOT / "build" / preset / "tests/unit/programs"
    rows = [line.split(maxsplit=2) for line in listed.read_text().splitlines()] if listed.exists() else []
    return [Path(path) for *labels, path in rows if os.access(path, os.X_OK) and not {*labels} & {*without}]


def cases_of(program, prefix):
    words = [*prefix, str(program), "--gtest_list_tests"]
    text = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60, env=commands.environment()).stdout
    return sum(line.startswith("  ") for line in text.splitlines())


def folders_of(program):
    """The folders of the product and of the tests that a program guards, by its own folder."""
    name = program.parent.relative_to(program.parents[[path.name for path in program.parents].index("unit")]).parts[:1]
    folder = name[0] if name else ""
    return (f"tests/unit/{folder}", "lib" if folder in ("lib", "bridge") else f"examples/{folder}" if folder == "embedding_job" else f"agent/{folder}")


class Run:
    """One shard of a program."""

    def __init__(self, suite, program, preset, shard, shards, seed, prefix):
        self._suite, self._program, self._prefix = suite, program, prefix
        self._options = ["--gtest_shuffle", f"--gtest_random_seed={seed}"]
        self._shard = {"GTEST_TOTAL_SHARDS": shards, "GTEST_SHARD_INDEX": shard}
        self._env = commands.environment(**self._shard)
        self.log = commands.LOGS / f"unit-{preset}" / f"{program.name}.{shard}.log"

    def __call__(self, deadline):
        """The cases."""
        if time.monotonic() > deadline:
            return []
        status, reason = None, ""
        try:
            status = commands.run([*self._prefix, self._program, *self._options], self.log, min(deadline, time.monotonic() + _SECONDS_OF_A_PROGRAM), self._env)
        except commands.TimeOver:
            reason = "a hang"
        return list(self._cases(self.log.read_text(errors="replace"), status, reason))

    def _cases(self, text, status, reason):
        running, failed = None, False
        report = "a sanitizer's report" if _REPORT.search(text) else ""
        for line in text.splitlines():
            if began := _BEGAN.match(line):
                running = began[1]
            elif running and (ended := _ENDED.search(line)) and ended[2] == running:
                outcome = "passed" if ended[1] == "OK" else "failed"
                failed = failed or outcome == "failed"
                never = "a skip" if ended[1] == "SKIPPED" else report if outcome == "failed" else ""
                yield self._case(running, outcome, int(ended[3] or 0) / 1000, never)
                running = None
        if running:
            yield self._case(running, "failed", 0, reason or ("a hang" if _HUNG in text else report or "a crash"))
        elif status not in (0, 1) or status == 1 and not failed or _RAN not in text:
            yield self._case("*", "failed", 0, reason or report or "a crash")

    def _case(self, name, outcome, seconds, never_forgiven):
        program = os.path.relpath(self._program, commands.ROOT)
        command = (*self._prefix, program, f"--gtest_filter={name}")
        in_order = ("env", *(f"{key}={value}" for key, value in self._shard.items()), *self._prefix, program, *self._options)
        title = f"{self._program.name} {name}" if name != "*" else self._program.name
        return Case(self._suite, title, outcome, seconds, command, in_order, never_forgiven, folders_of(self._program))


def _personality(preset):
    """A container may forbid it."""
    if preset == "tsan" and subprocess.run([*_PERSONALITY, "true"], check=False, capture_output=True).returncode == 0:
        return _PERSONALITY
    return []


def run(suite, preset, deadline, seed, without=(), prefix=()):
    """Runs all programs of a preset, each by the words of `prefix`. Yields the cases, and prints the end of a failure's output.

    One more at a time than there are processors, because some cases wait.
    """
    prefix = [*prefix, *_personality(preset)]
    pieces = []
    for program in found(preset, without):
        cases = cases_of(program, prefix)
        shards = max(1, cases // _CASES_OF_A_SHARD)
        pieces += [(cases / shards, Run(suite, program, preset, shard, shards, shuffle_seed(seed), prefix)) for shard in range(shards)]
    with concurrent.futures.ThreadPoolExecutor(commands.PROCESSORS + 1) as pool:
        for piece, cases in zip(pieces, pool.map(lambda piece: piece[1](deadline), pieces)):
            if any(case.outcome == "failed" for case in cases):
                print(commands.tail(piece[1].log), flush=True)
            yield from cases
    if not pieces:
        yield Case(suite, f"no program in build/{preset}/tests/unit", "failed", never_forgiven="a build")
