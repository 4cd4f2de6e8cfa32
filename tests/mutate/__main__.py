"""usage: ./run mutate [PATH] [--count N] [--seed S] [--layers N] [--allow N] [--again] [--list]

Makes one-line faults in the product's sources and runs the tests on each: a mutant that no test kills shows what the tests do not guard.
PATH: a folder or a file of agent/, lib/src or lib/include (default: all). --layers: runs the first N kinds of tests only (layers.py).
--seed: draws the mutants (default: PERSIA_TEST_SEED, else 1). --allow: exits with 1 if more than N mutants survive (default 0). --again: runs only the mutants that survived before, and keeps earlier
kills though tests have changed. --list prints what is drawn, and runs nothing.
"""

import argparse
import fcntl
import signal
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))

import layers  # noqa: E402
import processes  # noqa: E402
import tree as trees  # noqa: E402
from drawing import all_mutations, draw  # noqa: E402
from test_seed import seed  # noqa: E402

_REDRAWN = ("did not compile", "same code")


def arguments():
    parser = argparse.ArgumentParser(prog="./run mutate", usage=__doc__.split("\n")[0].removeprefix("usage: "), add_help=False)
    parser.add_argument("path", nargs="?", default="")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=seed())
    parser.add_argument("--layers", type=int, default=len(layers.LAYERS))
    parser.add_argument("--allow", type=int, default=0)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


def shown(mutation):
    lines = [("-", line) for line in mutation.old.split("\n")] + [("+", line) for line in mutation.new.split("\n")]
    return "\n".join([f"{mutation.path}:{mutation.line}  {mutation.operator}", *(f"      {sign} {line.strip()}" for sign, line in lines)])


class Session:
    """Runs mutants in the tree, one after the other."""

    def __init__(self, tree, kinds):
        self._tree = tree
        self._layers = layers.LAYERS[:kinds]
        self._left_out = set()  # cases that fail without a mutation
        self._good = set()  # cases, or checks of which no case is named, that passed without a mutation and have no baseline
        self._usual = {}  # by the check's name: seconds without a mutation

    def prepare(self, known):
        """Builds, and runs all but the last two layers without a mutation, unless `known` has what an earlier run learnt. Returns that."""
        checks = layers.without_mutation(self._tree)
        built = self._tree.build(sorted({target for check in checks for target in check.targets} | set(layers.LAST_TARGETS)))
        if not built.ok:
            raise RuntimeError(f"the build fails without a mutation:\n{built.output[-4000:]}")
        self._tree.note_originals()
        if known:
            self._left_out, self._usual = set(known["left_out"]), known["usual"]
            return known
        for check in checks:
            ended = self._run(check, check.seconds)
            while not ended.ok:
                if not set(check.failed(ended.output)) - self._left_out:
                    raise RuntimeError(f"{check.name} fails without a mutation:\n{ended.output[-4000:]}")
                self._leave_out(check.failed(ended.output))
                ended = self._run(check, check.seconds)
            self._usual[check.name] = ended.seconds
        return {"left_out": sorted(self._left_out), "usual": self._usual}

    def judge(self, mutation):
        """(outcome, by what) of a mutant: "killed", "survived", "did not compile" or "same code"."""
        while True:
            outcome, by, check, cases = self._judge(mutation)
            if check is None or check.name in self._usual or set(cases or [check.name]) <= self._good:
                return outcome, by
            # The check has no baseline: the cases must pass without the mutation, and if none is named, all of them.
            built = self._tree.build(check.targets)
            ended = self._run(check, check.seconds, only=cases) if built.ok else built
            if ended.ok:
                self._good.update(cases or [check.name])
            elif cases or check.failed(ended.output):
                self._leave_out(cases or check.failed(ended.output))
            else:
                raise RuntimeError(f"{check.name} fails without a mutation:\n{ended.output[-4000:]}")

    def _judge(self, mutation):
        """The same, with the check and the cases that killed it."""
        text = self._tree.read(mutation.path)
        since = time.time_ns()
        self._tree.write(mutation.path, mutation.apply(text))
        try:
            compiled = False
            for name, layer in self._layers:
                for check in layer(self._tree, mutation):
                    if not self._tree.build(check.targets).ok:
                        return "did not compile", "", None, []
                    if not compiled and mutation.path.endswith(".cc") and self._tree.same_objects(since):
                        return "same code", "", None, []
                    compiled = True
                    if any(map(self._tree.differs, check.programs)):
                        by, cases = self._killed_by(check)
                        if by:
                            return "killed", f"{name}: {by}", check, cases
            return ("same code" if self._tree.same_objects(since) else "survived"), "", None, []
        finally:
            self._tree.write(mutation.path, text)

    def _leave_out(self, cases):
        print(f"without a mutation fails, and is left out: {' '.join(cases)}", flush=True)
        self._left_out.update(cases)

    def _run(self, check, seconds, only=(), without=()):
        command = check.command(only, [*without, *sorted(self._left_out)])
        program = self._tree.build_directory / command[0]
        # Freed memory is overwritten, so that a use of it is seen; memory in a thread's cache would not be.
        env = {"MALLOC_PERTURB_": "165", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
        env |= {"PERSIA_BUILD_DIR": str(self._tree.build_directory)}
        return processes.run([program if program.exists() else command[0], *command[1:]], seconds, self._tree.root, env)

    def _killed_by(self, check):
        """What kills the mutant, or "", and the cases. It must fail twice, because a test may also fail by chance."""
        limit = check.seconds
        if check.name in self._usual:
            limit = layers.PATIENCE + 3 * self._usual[check.name]
        by_chance = []
        while not (ended := self._run(check, limit, without=by_chance)).ok:
            cases = check.failed(ended.output)
            name = cases[0] if cases else check.name
            if ended.timed_out:
                return f"{name}, timed out after {ended.seconds:.0f} s", cases
            if not self._run(check, limit, only=cases).ok:
                return name, cases
            if len(by_chance) >= 3:
                break
            by_chance += cases
        return "", []


def report(results, redrawn, began):
    survivors = [mutation for mutation, result in results if result["outcome"] == "survived"]
    if survivors:
        print("\nsurvivors:")
    for mutation in survivors:
        print(f"  {shown(mutation)}")
    timed_out = sum("timed out" in result["by"] for _, result in results)
    seconds = sum(result["seconds"] for _, result in results)
    print(
        f"\n{len(results)} mutants: {len(results) - len(survivors)} killed ({timed_out} by a time limit), {len(survivors)} survived; "
        f"redrawn: {redrawn.count('did not compile')} did not compile, {redrawn.count('same code')} had the same code; "
        f"{time.monotonic() - began:.0f} s, {seconds / max(1, len(results)):.0f} s a mutant",
        flush=True,
    )
    return len(survivors)


def main():
    options = arguments()
    sources = trees.sources_of(ROOT, options.path)
    if not sources:
        sys.exit(f'mutate: "{options.path}": no source of {", ".join(trees.PRODUCT)}')
    drawn = draw(all_mutations(sources), options.seed)
    if options.list:
        print("\n".join(map(shown, drawn[: options.count])))
        return 0

    began = time.monotonic()
    directory = ROOT / "build/mutate"
    directory.mkdir(parents=True, exist_ok=True)
    lock = (directory / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit("mutate: another ./run mutate works in this checkout")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    processes.adopt_orphans()

    tree = trees.Tree(ROOT)
    fingerprint = tree.refresh()
    results, redrawn = [], []
    try:
        tree.configure()
        kept = trees.Results(directory / "results.jsonl")
        session = Session(tree, options.layers)
        print(f"building, and running the tests without a mutation, in {tree.root}", flush=True)
        known = kept.find(fingerprint, "without a mutation", any_tree=options.again)
        learnt = session.prepare(known)
        if not known:
            kept.add(fingerprint, "without a mutation", outcome="passed", layers=len(layers.LAYERS), **learnt)
        for mutation in drawn:
            if len(results) >= options.count:
                break
            result = kept.find(fingerprint, mutation.key, options.layers, options.again)
            if not result:
                start = time.monotonic()
                outcome, by = session.judge(mutation)
                seconds = round(time.monotonic() - start, 1)
                result = kept.add(fingerprint, mutation.key, outcome=outcome, by=by, seconds=seconds, layers=options.layers)
            if result["outcome"] in _REDRAWN:
                redrawn.append(result["outcome"])
                continue
            results.append((mutation, result))
            print(f"{len(results):3} {shown(mutation)}\n    {result['outcome']} {result['by']} ({result['seconds']:.0f} s)", flush=True)
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from here", flush=True)
        report(results, redrawn, began)
        return 130
    return int(report(results, redrawn, began) > options.allow)


if __name__ == "__main__":
    sys.exit(main())
