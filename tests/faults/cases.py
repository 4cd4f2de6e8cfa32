"""Runs programs under faults, many at a time, and judges each: its own result, its time, and its exported and refused values."""

import concurrent.futures
import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from segment import DROPS, read_all
from servers import processes

ROOT = Path(__file__).parents[2]
BUILD = Path(os.environ.get("PERSIA_BUILD_DIR", ROOT / "build/release"))
PROGRAMS = BUILD / "tests/faults"
SCENARIO = PROGRAMS / "fault_scenario"
INJECT = PROGRAMS / "libfault_inject.so"
AGENT = BUILD / "agent/cli/persia-metrics-agent"

LONG = os.environ.get("PERSIA_TEST_FAULTS") == "all"
SECONDS = 30  # a program takes 0.01 s; this is the bound under which it may not hang
_SHOWN = 12
BOTH = ("parent", "child")
_LOG = "persia-metrics: "
DIRECTORY = "@DIRECTORY@"


@dataclass
class Case:
    """A command in an environment. In both, the case's own directory replaces DIRECTORY."""

    name: str
    command: list
    env: dict = field(default_factory=dict)
    stdout: str = None  # the program's output without the library; None: not compared
    complete: tuple = ()  # the processes to which nothing may be refused
    reasons: tuple = DROPS  # for which something may be refused
    expected: dict = None  # the counts, by process and key; None: those that the program prints
    a_line_is_enough: bool = False  # for a missing value, since a copy that fails is made again, and refuses nothing
    # The program runs until this is true of the process, its directory of segments and its text on stderr; else to its own end.
    until: Callable = None
    look: Callable = None  # looks at the directory of the segments after the program

    def shell(self):
        """A command line that runs the case again."""
        env = [f"{key}={value}" for key, value in self.env.items() if key != "PATH"]
        words = shlex.join([*env, *map(str, self.command)]).replace(DIRECTORY, "/dev/shm/faults-again")
        return f"mkdir -pm700 /dev/shm/faults-again; env -i PATH=$PATH {words}"


@dataclass
class Outcome:
    case: Case
    code: int
    stdout: str
    stderr: str
    segments: dict
    calls: dict
    hits: int
    hung: str
    seen: object  # the result of `look`

    def pids(self):
        return {who: int(pid) for who, pid in re.findall(r"^pid (\w+) (\d+)$", self.stdout, re.M)}

    def counted(self):
        """The counts that the program prints, by process and key."""
        if self.case.expected is not None:
            return self.case.expected
        counted = {}
        for who, key, value in re.findall(r"^counted (\w+) (.*) (\S+)$", self.stdout, re.M):
            counted.setdefault(who, {})[key] = float(value)
        return counted

    def logged(self):
        return any(line.startswith(_LOG) for line in self.stderr.splitlines())


def own_lines(stdout):
    """The output without process ids."""
    return [line for line in stdout.splitlines() if not line.startswith("pid ")]


def _export_problems(outcome):
    pids = outcome.pids()
    refused_by_parent = set()
    for who, counted in sorted(outcome.counted().items(), reverse=True):  # the parent first
        segment = outcome.segments.get(pids.get(who))
        values = {} if segment is None else segment.values
        short = sorted(key for key, value in counted.items() if values.get(key, 0) != value)
        more = [key for key in short if values.get(key, 0) > counted[key]]
        # A handler that could not be configured does not keep back the values of its group; a line says so.
        unknown = sorted(key for key, value in values.items() if key not in counted and value and not key.startswith("a quiet group"))
        if more:
            yield f"{who} exports more than it counted: {', '.join(f'{key}: {values[key]}, not {counted[key]}' for key in more)}"
        if unknown:
            yield f"{who} exports what it did not count: {', '.join(unknown)}"
        # The handles of a child are its parent's: a metric that was refused in the parent counts nothing in the child, and the parent counted it.
        refused = _families(short) - refused_by_parent
        refused_by_parent |= refused if who == "parent" else set()
        if not refused:
            continue
        if who in outcome.case.complete:
            yield f"{who} exports {_some(short)} not or not wholly; dropped: {segment.dropped if segment else 'no segment'}"
        elif (segment is None or outcome.case.a_line_is_enough) and outcome.logged():
            continue
        elif segment is None:
            yield f"{who} exports nothing, and no line says so"
        elif not set(segment.dropped) <= set(outcome.case.reasons):
            yield f"{who} counts what it refuses under {segment.dropped}, not under {outcome.case.reasons}"
        elif sum(segment.dropped.values()) < len(refused):
            yield f"{who} exports {_some(short)} not or not wholly, and counts as dropped: {segment.dropped or 'nothing'}"


def _families(keys):
    """The families that the keys belong to: one that is refused is counted once, with any number of series."""
    return {re.split("[{:]", key, maxsplit=1)[0] for key in keys}


def _some(keys):
    return ", ".join(keys[:4]) + (f" and {len(keys) - 4} more" if len(keys) > 4 else "")


def problems(outcome):
    """The problems of an outcome: lines."""
    if outcome.hung:
        yield f"it did not end within {SECONDS} s\n{outcome.hung}"
        return
    errors = outcome.stderr.strip()
    if outcome.code != 0:
        how = signal.Signals(-outcome.code).name if outcome.code < 0 else f"code {outcome.code}"
        yield f"it ended with {how}: {errors[-300:]}"
        return
    if outcome.case.stdout is not None:
        have, want = own_lines(outcome.stdout), own_lines(outcome.case.stdout)
        if have != want:
            pairs = zip(have + ["(nothing)"] * len(want), want + ["(nothing)"] * len(have))
            yield "its own result is another: {!r}, not {!r}".format(*next(pair for pair in pairs if pair[0] != pair[1]))
    yield from _export_problems(outcome)


def _group_members(group):
    return [pid for pid, (_, _, its_group) in processes() if its_group == group]


def _stacks(group):
    """Where the threads of a group's processes are, by gdb if there is one: a line of functions for each."""
    gdb = shutil.which("gdb")
    if gdb is None:
        return "no gdb: its stacks are not known"
    lines = []
    for pid in _group_members(group):
        command = [gdb, "-p", str(pid), "-batch", "-ex", "thread apply all backtrace"]
        with contextlib.suppress(subprocess.TimeoutExpired):
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
            for thread in done.stdout.split("\nThread ")[1:]:
                frames = re.findall(r"^#\d+ +(?:0x\w+ in )?(.*?) \(", thread, re.M)
                lines.append(f"    process {pid}: " + " < ".join(frames))
    return "\n".join(lines)


def _wait(condition):
    """Waits for a condition, but not for ever."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and not condition():
        time.sleep(0.02)


def _read_report(path):
    """The calls by function, and how many of them failed."""
    data = path.read_bytes()
    calls = {}
    for at in range(8, len(data), 32):
        name = data[at : at + 24].rstrip(b"\0").decode()
        calls[name] = int.from_bytes(data[at + 24 : at + 32], "little")
    return calls, int.from_bytes(data[:8], "little")


def run(case):
    """Runs a case in a new directory."""
    base = Path(tempfile.mkdtemp(prefix="persia-faults-", dir="/dev/shm"))
    try:
        directory = base / "segments"
        directory.mkdir(mode=0o700)
        owner = case.env.get("OWNER")
        if owner:
            os.chmod(base, 0o755)
            os.chown(directory, int(owner), int(owner))
        report = base / "report"
        env = {key: value.replace(DIRECTORY, str(directory)) for key, value in case.env.items()}
        if "LD_PRELOAD" in env:
            report.touch()
            env["FAULTS_REPORT"] = str(report)
        command = [str(word).replace(DIRECTORY, str(directory)) for word in case.command]
        hung = ""
        errors = open(base / "stderr", "w+b") if case.until else None
        process = subprocess.Popen(
            command,
            env=env,
            cwd="/",
            stdin=subprocess.PIPE if case.until else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors or subprocess.PIPE,
            start_new_session=True,
        )
        if case.until:
            _wait(lambda: process.poll() is not None or case.until(process, directory, (base / "stderr").read_text()))
        try:
            stdout, stderr = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            hung = _stacks(process.pid)
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
        if errors:
            errors.seek(0)
            stderr = errors.read()
            errors.close()
        calls, hits = _read_report(report) if report.exists() else ({}, 0)
        texts = [text.decode(errors="replace") for text in (stdout, stderr)]
        seen = case.look(directory) if case.look and not hung else None
        return Outcome(case, process.returncode, *texts, read_all(directory), calls, hits, hung, seen)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _grouped(bad):
    """A paragraph for each kind of problem: the cases that have it, and how to run the first one again."""
    groups = {}
    for case, found in bad:
        groups.setdefault(re.sub(r"\d+", "N", "\n".join(found)), []).append((case, found))
    for group in sorted(groups.values(), key=len, reverse=True)[:_SHOWN]:
        names = [case.name for case, _ in group]
        yield f"{len(group)} cases: {', '.join(names[:_SHOWN])}{', ...' if len(names) > _SHOWN else ''}"
        case, found = group[0]
        yield from (f"  {line}" for line in found)
        yield f"  again: {case.shell()}"


def run_all(cases, at_a_time=os.cpu_count()):
    """Runs the cases, this many at a time. Fails if any has a problem, and prints the command that runs it again."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=at_a_time) as pool:
        outcomes = list(pool.map(run, cases))
    bad = [(outcome.case, list(problems(outcome))) for outcome in outcomes]
    bad = [(case, found) for case, found in bad if found]
    assert not bad, f"{len(bad)} of {len(outcomes)} cases failed\n" + "\n".join(_grouped(bad))
    return outcomes


def environment(**extra):
    """The environment of a program under test."""
    return {"PATH": os.environ["PATH"], "BENCHMARK_AI": "segment", **extra}


# How the scenario's metrics come to be exported: the environment asks for it, or a call of Init.
WAYS = {"env": ([], {"PERSIA_METRICS_DIR": DIRECTORY}), "init": (["late"], {"FAULTS_DIRECTORY": DIRECTORY})}


def scenario(name, way="env", wrapper=(), **more):
    """A case of the scenario; `wrapper` runs it."""
    words, env = WAYS[way]
    env = environment(**{**env, **more.pop("env", {})})
    return Case(f"{name} ({way})", [*wrapper, SCENARIO, *words, *more.pop("words", ())], env, **more)


def bare(wrapper=(), **more):
    """The scenario without the library."""
    return Case("bare", [*wrapper, SCENARIO, "bare"], environment(), expected={}, **more)
