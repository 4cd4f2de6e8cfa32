"""What the stages of the gate and of the night run. Each function yields cases."""

import concurrent.futures
import os
import re
import subprocess
import time

import commands
import programs
import results
from results import Case

_PYTEST = (commands.PYTHON, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider")


def command(suite, words, *, deadline, name=None, seeded=False, quiet=True, folders=(), **env):
    """One command that counts as one case. If it fails, the end of its output is shown; without `quiet`, also if not."""
    words = tuple(str(word) for word in words)
    log = commands.LOGS / f"{re.sub(r'[^a-z0-9]+', '-', (name or suite).lower())}.log"
    began = time.monotonic()
    status = commands.run(words, log, deadline, commands.environment(**env))
    if status != 0 or not quiet:
        print(commands.tail(log), flush=True)
    again = (*(f"{key}={value}" for key, value in env.items()), *words)
    again = ("env", *again) if env else again
    never = "it is a function of its seed" if seeded else ""
    yield Case(suite, name or suite, "failed" if status else "passed", time.monotonic() - began, again, (), never, folders)


def each(suite, rows, *, deadline):
    """Commands by name, one after another."""
    for name, words in rows.items():
        yield from command(suite, words, deadline=deadline, name=name)


def build(suite, preset, *targets, deadline):
    words = (commands.PYTHON, "packaging/setup/compile.py", preset, *targets)
    for case in command(suite, words, deadline=deadline):
        yield Case(**{**vars(case), "never_forgiven": "a build"})


def pytest(suite, paths, *, deadline, width=1, options=(), config=None, prefix=(), seeded=False, folders_of=lambda path: (), **env):
    """A session of pytest. With `width`, so many workers of xdist, each with whole modules."""
    file = commands.LOGS / f"{re.sub(r'[^a-z0-9]+', '-', suite.lower())}.jsonl"
    file.unlink(missing_ok=True)
    workers = ("-n", str(width), "--dist", "loadfile") if width > 1 else ("-p", "no:xdist")
    settings = ("-c", config or "tests/pytest.ini", "--rootdir=.", "--confcutdir=tests")
    log = file.with_suffix(".log")
    # Behind sudo, which clears the environment.
    inherited = {name: value for name, value in os.environ.items() if name in ("PERSIA_TEST_SEED", "PERSIA_TEST_EVERY_NEED")}
    words = [f"{key}={value}" for key, value in (inherited | env).items()]
    try:
        status = commands.run(
            (*prefix, "env", f"PERSIA_TEST_CASES={file}", *words, *_PYTEST, *settings, *workers, *options, *paths), log, deadline
        )
    finally:
        rows = results.read(file)
        ended = bool(rows) and rows[-1]["id"] is None
        rows = [row for row in rows if row["id"]]
        for row in rows:
            again = (*prefix, "env", *words, *_PYTEST, *settings, row["id"])
            in_order = (*prefix, "env", *words, *_PYTEST, *settings, *options, row["id"].split("::")[0])
            never = row["never"] or ("it is a function of its seed" if seeded else "")
            yield Case(suite, row["id"], row["outcome"], row["seconds"], again, in_order, never, tuple(folders_of(row["id"])))
    failed = any(row["outcome"] == "failed" for row in rows)
    if failed or status not in (0, 5):
        print(commands.tail(log, 80), flush=True)
    if not ended or status not in (0, 1) or status == 1 and not failed or not rows:
        yield Case(suite, f"{suite}: pytest ended with status {status}, after {len(rows)} tests", "failed", never_forgiven="no case to run again")


def unit(suite, preset, *, deadline, seed, without=(), prefix=()):
    yield from programs.run(suite, preset, deadline, seed, without, prefix)


def growth(suite, *, deadline):
    """Counts the instructions of collections: each number is a function of the commit, so several are counted at a time."""
    program = commands.ROOT / "build/test/tests/bench/bench_growth"
    names = [line.split()[0] for line in subprocess.run([program], check=True, capture_output=True, text=True, timeout=60).stdout.splitlines()]

    def counted(name):
        words = (commands.PYTHON, "tests/bench/check_growth.py", "build/test/tests/bench/bench_growth", name)
        return list(command(suite, words, deadline=deadline, name=f"growth by {name}", seeded=True))

    with concurrent.futures.ThreadPoolExecutor(commands.PROCESSORS) as pool:
        for cases in pool.map(counted, names):
            yield from cases


def built(preset):
    """The environment of tests that use a preset's programs."""
    return {"PERSIA_BUILD_DIR": os.path.join(commands.ROOT, "build", preset)}


def as_root():
    """The words before a command that needs root. They ask for no password, because without a terminal that would hang."""
    return () if os.geteuid() == 0 else ("sudo", "-n")
