"""One run of the gate, of `./run test` or of the night: stages one after another, each with a time limit, then the report.

A stage yields cases. What has failed is run again at the end, alone, twice, and once in its order: a case that passes each time is unstable, and
does not fail the gate, unless it ended by a crash, a hang or a sanitizer's report, is a seeded one, guards a folder that the change touches, or
more than `_MOST_UNSTABLE` cases have failed. Nothing else is run again anywhere.
"""

import dataclasses
import json
import shlex
import sys
import time
import traceback

import commands
from results import Case

_MOST_UNSTABLE = 3
_SECONDS_OF_A_CASE = 1800


def say(text):
    print(f"\033[1m==> {text}\033[0m" if sys.stdout.isatty() else f"==> {text}", flush=True)


@dataclasses.dataclass
class Stage:
    name: str
    seconds: float = 0
    cases: list = dataclasses.field(default_factory=list)
    cut: bool = False  # at its time limit

    def count(self, outcome):
        return sum(case.outcome == outcome for case in self.cases)


class Stop(Exception):
    """What follows would say nothing: a build has failed, or a static check."""


class Session:
    def __init__(self, name, seed, seconds):
        self._name = name
        self.seed = seed
        self._began = time.monotonic()
        self._end = self._began + seconds
        self.stages = []
        commands.LOGS.mkdir(parents=True, exist_ok=True)

    def stage(self, name, minutes, action, *arguments, **more):
        """Runs `action(name, ..., deadline=)`, which yields cases. Returns whether all have passed."""
        say(name)
        stage = Stage(name)
        self.stages.append(stage)
        began = time.monotonic()
        deadline = min(began + minutes * 60, self._end)
        try:
            stage.cases.extend(_until(deadline, action(name, *arguments, deadline=deadline, **more)))
        except commands.TimeOver as error:
            stage.cut = True
            stage.cases.append(Case(name, f"ended at its time limit: {error}", "failed", never_forgiven="a hang"))
        except Exception as error:  # the report must come, whatever the gate meets
            traceback.print_exc(file=sys.stdout)
            stage.cases.append(Case(name, f"the gate itself: {error!r}", "failed", never_forgiven="the gate itself"))
        if not stage.cases:
            stage.cases.append(Case(name, "no case", "failed", never_forgiven="nothing ran"))
        stage.seconds = time.monotonic() - began
        failed = stage.count("failed")
        print(f"    {name}: {f'{failed} FAILED' if failed else 'passed'}, {len(stage.cases)} cases in {stage.seconds:.0f} s", flush=True)
        return not failed

    def failed(self):
        return [case for stage in self.stages for case in stage.cases if case.outcome == "failed"]

    def confirm(self, touched):
        """Runs each failed case again, alone, twice. Returns those that count, each with the reason, and the unstable ones."""
        failed = self.failed()
        if len(failed) > _MOST_UNSTABLE:
            return [(case, case.never_forgiven) for case in failed], []
        counting, unstable = [], []
        for case in failed:
            folders = sorted(set(case.folders) & touched)
            if case.never_forgiven or not case.command:
                counting.append((case, case.never_forgiven))
            elif folders:
                counting.append((case, f"the change touches {', '.join(folders)}"))
            elif not (self._passes(case.name, case.command, "alone, 1 of 2") and self._passes(case.name, case.command, "alone, 2 of 2")):
                counting.append((case, "again when run alone"))
            elif case.in_order and not self._passes(case.name, case.in_order, "in its order"):
                counting.append((dataclasses.replace(case, command=case.in_order), "again in its order, though not alone"))
            else:
                unstable.append(case)
        return counting, unstable

    def _passes(self, name, command, how):
        say(f"{how}: {name}")
        log = commands.LOGS / "again.log"
        deadline = min(time.monotonic() + _SECONDS_OF_A_CASE, self._end)
        try:
            status = commands.run(command, log, deadline, commands.environment(PERSIA_TEST_SEED=self.seed))
        except commands.TimeOver as error:
            print(f"    {error}")
            return False
        if status != 0:
            print(commands.tail(log))
        return status == 0

    def report(self, touched=frozenset()):
        """Prints the stages, then each case that failed or is unstable with its seed and command, then the totals. Returns the exit status."""
        counting, unstable = self.confirm(touched)
        say("stages")
        for stage in self.stages:
            words = [f"{stage.count(outcome)} {outcome}" for outcome in ("passed", "failed", "not run") if stage.count(outcome)]
            print(f"    {stage.seconds:6.0f} s  {stage.name}: {', '.join(words) or 'nothing'}{', ended at its time limit' if stage.cut else ''}")
        for case, reason in counting:
            print(f"FAILED {case.name}{f' ({reason})' if reason else ''}, seed {self.seed}: {self._again(case)}")
        for case in unstable:
            print(f"UNSTABLE {case.name}, seed {self.seed}: {self._again(case)}")
        passed, not_run = (sum(stage.count(outcome) for stage in self.stages) for outcome in ("passed", "not run"))
        more = "".join(f", {number} {word}" for number, word in ((len(unstable), "unstable"), (not_run, "not run")) if number)
        say(f"total time: {time.monotonic() - self._began:.0f} s")
        print(f"{passed} passed, {len(counting)} failed{more}", flush=True)
        self._write(counting, unstable)
        return 1 if counting else 0

    def _again(self, case):
        """The command as a shell takes it."""
        return f"PERSIA_TEST_SEED={self.seed} {shlex.join(case.command)}" if case.command else "no command repeats it"

    def _write(self, counting, unstable):
        def rows(cases):
            return [{"suite": case.suite, "name": case.name, "seed": self.seed, "command": self._again(case)} for case in cases]

        stages = [
            {
                "suite": stage.name,
                "result": "failed" if stage.count("failed") else "passed",
                "seed": self.seed,
                "seconds": round(stage.seconds, 1),
                "cases": len(stage.cases),
                "failed": rows(case for case in stage.cases if case.outcome == "failed"),
                "slowest": {case.name: case.seconds for case in sorted(stage.cases, key=lambda case: -case.seconds)[:10]},
            }
            for stage in self.stages
        ]
        result = {"suites": stages, "failed": rows(case for case, _ in counting), "unstable": rows(unstable)}
        (commands.ROOT / "build" / f"{self._name}.json").write_text(json.dumps(result, indent=1) + "\n")


def _until(deadline, cases):
    yield from cases
    if time.monotonic() > deadline:
        raise commands.TimeOver("some of its cases have not run")
