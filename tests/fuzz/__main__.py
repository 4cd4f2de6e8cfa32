"""usage: ./run fuzz [TARGET ...] [--seconds N] [--seed S]

Runs each libFuzzer target on its hostile inputs and its corpus, then fuzzes it for N seconds (default 600; 0: not), one target a processor. An
input is held to a time and an amount of memory (README.md). Fails also below 10,000 new inputs a minute.
"""

import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests/fuzz"
LOGS = ROOT / "build/logs"
TARGETS = sorted(path.stem for path in FOLDER.glob("fuzz_*.cc"))
_LEAST_A_MINUTE = 10_000
# Freed memory that AddressSanitizer withholds counts.
_ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "quarantine_size_mb=16"}


def libfuzzer(preset, target, *options):
    """Runs a target that this preset built. Returns its output; a failure raises CalledProcessError."""
    words = [ROOT / "build" / preset / "tests/fuzz" / target, "-timeout=5", f"-artifact_prefix={LOGS}/{target}-", *options]
    log = LOGS / f"{target}.log"
    with open(log, "a") as output:
        subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=_ENVIRONMENT, check=True)
    return log.read_text(errors="replace")


def inputs(kind, target):
    folder = FOLDER / kind / target
    return sorted(folder.iterdir()) if folder.is_dir() else []


def fuzz(target, seconds, seed):
    """Runs one target. Returns one line, and whether it went well."""
    (LOGS / f"{target}.log").unlink(missing_ok=True)
    preset = "fuzz" if seconds else "sanitize"
    corpus = inputs("corpus", target) or [FOLDER / "README.md"]  # some file, for a target without a corpus
    try:
        if hostile := inputs("hostile", target):
            libfuzzer(preset, target, "-rss_limit_mb=128", *hostile)
        libfuzzer(preset, target, "-rss_limit_mb=512", "-malloc_limit_mb=128", *corpus)
        if not seconds:
            return f"{target}: its hostile inputs and its corpus", True
        found = ROOT / "build/fuzz/found" / target
        found.mkdir(parents=True, exist_ok=True)
        folders = [found, *([FOLDER / "corpus" / target] if inputs("corpus", target) else [])]
        output = libfuzzer(preset, target, f"-max_total_time={seconds}", f"-seed={seed}", "-rss_limit_mb=512", "-malloc_limit_mb=128", *folders)
    except subprocess.CalledProcessError as error:
        return f"{target}: FAILED, exit status {error.returncode}, seed {seed}; its output: build/logs/{target}.log", False
    runs = int(re.findall(r"^Done (\d+) runs", output, re.MULTILINE)[-1])
    enough = runs >= _LEAST_A_MINUTE * seconds / 60
    return f"{target}: {runs} inputs{'' if enough else f', fewer than {_LEAST_A_MINUTE} a minute'}", enough


def main():
    parser = argparse.ArgumentParser(prog="./run fuzz", usage=__doc__.split("\n", maxsplit=1)[0].removeprefix("usage: "))
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)} (default: all)")
    parser.add_argument("--seconds", type=int, default=600, metavar="N")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("PERSIA_TEST_SEED") or "1"), metavar="S")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.targets) - set(TARGETS)):
        parser.error(f"unknown target {unknown[0]!r} ({', '.join(TARGETS)})")
    LOGS.mkdir(parents=True, exist_ok=True)
    good = True
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for line, well in pool.map(lambda target: fuzz(target, arguments.seconds, arguments.seed), arguments.targets or TARGETS):
            print(f"    {line}", flush=True)
            good = good and well
    return 0 if good else 1


sys.exit(main())
