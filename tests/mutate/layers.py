"""Which tests a mutant must get past, in this order: cheap ones first. A new kind of tests is one more line of LAYERS."""

import dataclasses
import os
import re

# The folders of the agent, from the lowest to the highest, and the modules of tests/e2e that are the contract of each: those that show
# its behaviour to a user. Quick ones first.
CONTRACT = {
    "lib": "test_short_processes test_events test_python_instruments test_odd_values test_origins test_python_processes",
    "supervisor": "test_supervisor_command test_supervisor_signals test_supervisor test_limits test_exec",
    "base": "test_log test_exec test_reload test_memory",
    "kernel": "test_worker_metrics test_machine test_deaths",
    "files": "test_survival test_retire test_reload",
    "model": "test_scrape_formats test_worker_metrics",
    "naming": "test_mapping test_bad_metrics",
    "segment": "test_short_processes test_events test_survival test_retire test_hostile_segments",
    "exposure": "test_bad_metrics test_mapping test_scrape_formats test_retire",
    "merge": "test_short_processes test_mixed_job test_retire",
    "ledger": "test_short_processes test_survival test_retire",
    "health": "test_worker_metrics test_deaths test_stacks test_goodput test_run_mode test_each_death test_page_waits test_stragglers",
    "gpu": "test_gpu",
    "workers": "test_short_processes test_worker_metrics test_limits test_retire",
    "machine": "test_machine test_metrics_table",
    "own": "test_metrics_table test_worker_metrics",
    "format": "test_scrape_formats test_native_histograms test_created_timestamps",
    "net": "test_http test_tls test_web_config test_web_hosts test_worker_metrics",
    "push": "test_groups test_quarantine test_gateway test_shown_addresses",
    "remote": "test_remote_write test_remote_write_faults",
    "config": "test_reload test_web_config test_remote_write test_tls",
    "job": "test_events test_other_users test_pipe test_run_mode test_unnamed_jobs",
    "web": "test_http test_events test_web_hosts",
    "top": "test_top",
    "app": "test_groups test_reload test_survival test_run_mode",
    "cli": "test_exec test_run_mode test_unnamed_jobs test_top test_gateway",
}
FOLDERS = list(CONTRACT)

PROGRAMS = (
    "agent/cli/persia-metrics-agent",
    "agent/cli/persia-metrics-agentd",
    "tests/e2e/worker/e2e_worker",
    "tests/chaos/worker/chaos_worker",
)
_PYTHON = ("persia_metrics_python", "persia_metrics_python_sources")
_PYTHON_MODULE = "lib/python/persia_metrics/_native.*.so"
FAULT_PROGRAMS = tuple(f"fault_{name}" for name in "scenario forks emit copy plugin_host plugin_shared plugin_static inject refuse".split())
# What the last two layers need beside the tests themselves.
LAST_TARGETS = (*PROGRAMS, *_PYTHON, "crash_states", *FAULT_PROGRAMS)
_HISTORIES = 5000
# A check may take this many seconds, and three times as long as without a mutation.
PATIENCE = 30


def folder_of(path):
    """The folder whose tests guard a source: one of agent/, or lib."""
    parts = path.split("/")
    return parts[1] if parts[0] == "agent" else "lib"


@dataclasses.dataclass(frozen=True)
class Check:
    """One command. A mutant that fails it twice is killed."""

    name: str
    targets: tuple  # of ninja, to build first
    programs: tuple  # patterns of files; if none differs from what it is without the mutation, the check is left out
    seconds: int
    words: tuple

    def command(self, only=(), without=()):
        """The command for all cases, for some, or without some."""
        del only, without  # it has no cases
        return list(self.words)

    def failed(self, output):
        """The cases that the output calls failed."""
        del output
        return []


class UnitTests(Check):
    """A program of GoogleTest, its cases one after the other."""

    def command(self, only=(), without=()):
        cases = ":".join(only) or (f"-{':'.join(without)}" if without else "*")
        return [*self.words, "--gtest_fail_fast", "--gtest_color=no", f"--gtest_filter={cases}"]

    def failed(self, output):
        """If the program crashed, the case that ran."""
        named = re.findall(r"^\[  FAILED  \] ([\w/]+\.[\w/]+)", output, re.MULTILINE)
        return sorted(set(named)) or re.findall(r"^\[ RUN      \] (\S+)", output, re.MULTILINE)[-1:]


class Modules(Check):
    """Modules of pytest, some at a time."""

    def command(self, only=(), without=()):
        options = ["-q", "-x", "--rootdir=.", "--tb=line", "-p", "no:cacheprovider", "-n", str(min(8, 3 * os.cpu_count())), "--dist", "loadfile"]
        return ["/usr/bin/python3", "-m", "pytest", *options, *(f"--deselect={case}" for case in without), *(only or self.words)]

    def failed(self, output):
        return sorted(set(re.findall(r"^(?:FAILED|ERROR) (\S+\.py::.*?)(?: - .*)?$", output, re.MULTILINE)))


def _unit_tests(program):
    return UnitTests(os.path.basename(program), (program,), (program,), 120, (program,))


def _folder_of_test(program):
    folder = program.split("/")[2]
    return "lib" if folder == "bridge" else folder


def own_unit_tests(tree, mutation):
    folder = folder_of(mutation.path)
    return [_unit_tests(program) for program in tree.test_programs if _folder_of_test(program) == folder]


def other_unit_tests(tree, mutation):
    """Those of folders that depend on it, the nearest first."""
    folder = folder_of(mutation.path)
    linked = tree.would_link(tree.test_programs) & set(tree.test_programs)
    order = sorted(linked, key=lambda program: FOLDERS.index(_folder_of_test(program)))
    return [_unit_tests(program) for program in order if _folder_of_test(program) != folder]


def model(tree, mutation):
    del tree, mutation
    program = "tests/model/model"
    return [Check(f"model, {_HISTORIES} histories", (program,), (program,), 120, (program, "--histories", str(_HISTORIES)))]


def contract(tree, mutation):
    del tree
    folder = folder_of(mutation.path)
    programs = (*PROGRAMS, _PYTHON_MODULE)
    return [Modules(f"contract of {folder}", (*PROGRAMS, *_PYTHON), programs, 900, tuple(f"tests/e2e/{name}.py" for name in CONTRACT[folder].split()))]


def crash_or_fault_tests(tree, mutation):
    """For the agent: the crash tests (power cuts). For the library: the fault tests (calls that fail)."""
    del tree
    if folder_of(mutation.path) != "lib":
        programs = (*PROGRAMS, "tests/crash/crash_states")
        return [Modules("crash tests", ("crash_states", *PROGRAMS), programs, 600, ("tests/crash",))]
    return [Modules("fault tests", (*FAULT_PROGRAMS, *PROGRAMS), ("tests/faults/*fault_*", "lib/*.so"), 600, ("tests/faults",))]


LAYERS = (
    ("unit tests of the folder", own_unit_tests),
    ("unit tests of other folders", other_unit_tests),
    ("model", model),
    ("contract", contract),
    ("crash or fault tests", crash_or_fault_tests),
)


def without_mutation(tree):
    """The checks that run first without a mutation. The last two layers take too long for that: their cases run when they kill a mutant."""
    return [*map(_unit_tests, tree.test_programs), *model(tree, None)]
