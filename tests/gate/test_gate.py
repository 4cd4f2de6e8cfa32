"""What the gate counts, forgives and repeats: with real sessions of pytest and real programs of GoogleTest."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import changes  # noqa: E402
import commands  # noqa: E402
import programs  # noqa: E402
import stages  # noqa: E402
from results import Case  # noqa: E402
from session import Session, Stop  # noqa: E402

SESSION = """
import sys
sys.path.insert(0, {e2e!r})
import needs
import pytest

needs._PROBES |= {{"moon": lambda: "no rocket", "earth": lambda: ""}}

@pytest.fixture
def fixture_that_fails():
    raise AssertionError("made for a test that is not run")

@pytest.fixture
def teardown_that_fails():
    yield
    raise AssertionError("after the test")

@pytest.mark.needs("earth")
def test_passes():
    pass

def test_fails(teardown_that_fails):
    raise AssertionError("in the test")

def test_fails_afterwards(teardown_that_fails):
    pass

@pytest.mark.needs("earth", "moon")
def test_cannot_run(fixture_that_fails):
    pass

@pytest.mark.needs("moon")
def test_cannot_run_either():
    pass

def test_is_skipped():
    pytest.skip("it needs nothing")
"""
CONFTEST = """
import sys
sys.path[:0] = [{e2e!r}, {gate!r}]
import needs
from results import Recorder, end_fixtures_on_sigterm

def pytest_configure(config):
    end_fixtures_on_sigterm()
    config.pluginmanager.register(needs)
    import os
    config.pluginmanager.register(Recorder(os.environ["PERSIA_TEST_CASES"]))
"""


@pytest.fixture
def python_tests(tmp_path, monkeypatch):
    """Runs this text as a module of tests. Returns outcome by name."""
    monkeypatch.setattr(commands, "LOGS", tmp_path)
    monkeypatch.setattr(commands, "ROOT", tmp_path)
    monkeypatch.delenv("PERSIA_TEST_EVERY_NEED", raising=False)
    folders = {"e2e": str(HERE.parent / "e2e"), "gate": str(HERE)}
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "conftest.py").write_text(CONFTEST.format(**folders))
    (tests / "pytest.ini").write_text("[pytest]\n")

    def run(text, want=lambda case: case.outcome, seconds=60, **more):
        (tests / "test_one.py").write_text(text.format(**folders))
        found = stages.pytest("tests", ["tests"], deadline=time.monotonic() + seconds, **more)
        return {case.name.rpartition("::")[2]: want(case) for case in found}

    return run


def test_a_need_that_is_not_met_counts_neither_as_passed_nor_as_failed(python_tests):
    assert python_tests(SESSION) == {
        "test_passes": "passed",
        "test_fails": "failed",
        "test_fails_afterwards": "failed",
        "test_cannot_run": "not run",
        "test_cannot_run_either": "not run",
        "test_is_skipped": "failed",
    }


def test_where_every_need_is_to_be_met_an_unmet_one_is_a_failure(python_tests):
    outcomes = python_tests(SESSION, PERSIA_TEST_EVERY_NEED=1)
    assert [name for name, outcome in outcomes.items() if outcome == "passed"] == ["test_passes"]
    assert "not run" not in outcomes.values()


@pytest.mark.parametrize("status", [1, 3])
@pytest.mark.parametrize("first", ["pass", "assert False"])
def test_what_ran_before_a_session_died_is_counted_and_its_death_is_a_failure(python_tests, status, first):
    text = f"import os\ndef test_a(): {first}\ndef test_b(): os._exit({status})\n"
    outcomes = python_tests(text)
    assert outcomes.pop("test_a") == ("passed" if first == "pass" else "failed")
    assert outcomes == {f"tests: pytest ended with status {status}, after 1 tests": "failed"}


def never_forgiven(case):
    return case.outcome, case.never_forgiven


def test_a_test_that_ends_its_worker_is_a_crash(python_tests):
    outcomes = python_tests("import os\ndef test_a(): pass\ndef test_b(): os._exit(1)\n", never_forgiven, width=2)
    assert outcomes["test_b"] == ("failed", "a crash")


def test_a_test_that_does_not_end_is_a_hang(python_tests):
    text = "import time\nimport pytest\n@pytest.mark.timeout(0.2)\ndef test_a(): time.sleep(60)\n"
    assert python_tests(text, never_forgiven)["test_a"] == ("failed", "a hang")


def test_a_skip_that_names_no_need_is_never_forgiven(python_tests):
    assert python_tests(SESSION, never_forgiven)["test_is_skipped"] == ("failed", "a skip that names no need")


def test_a_module_that_cannot_be_imported_has_failed(python_tests):
    assert set(python_tests("import nothing_of_this_name\n").values()) == {"failed"}


def cases_of(program, *filters, **environment):
    """Runs a program of the build by its name."""
    path = next(path for path in programs.found("test") if path.name == program)
    run = programs.Run("unit", path, "test", 0, 1, 1, [])
    run._options += filters
    run._env |= environment
    return run(time.monotonic() + 60)


def test_each_case_of_a_program_counts():
    cases = cases_of("agent_base_test", "--gtest_filter=*Log*")
    assert cases
    assert {case.outcome for case in cases} == {"passed"}
    assert all(f"--gtest_filter={case.name.split()[1]}" in case.command for case in cases)
    assert set(cases[0].folders) == {"agent/base", "tests/unit/base"}


def test_a_case_that_does_not_end_is_a_hang_and_not_forgiven():
    cases = cases_of("agent_files_test", "--gtest_filter=Journal*", PERSIA_TEST_SECONDS="0.001")
    assert [case.never_forgiven for case in cases if case.outcome == "failed"] == ["a hang"]


def test_a_program_that_ends_without_a_case_has_failed():
    (case,) = cases_of("agent_base_test", "--gtest_output=nonsense:", "--gtest_filter=Nothing", LD_PRELOAD="/nonexistent.so", GTEST_TOTAL_SHARDS="0")
    assert (case.outcome, case.never_forgiven) == ("failed", "a crash")


ENDED = "[----------] Global test environment tear-down\n"


@pytest.mark.parametrize(
    "text, status, expected",
    [
        ("[ RUN      ] A.a\n[       OK ] A.a (1 ms)\n" + ENDED, 0, [("A.a", "passed", "")]),
        ("[ RUN      ] A.a\nprinted[       OK ] A.a (1 ms)\n" + ENDED, 0, [("A.a", "passed", "")]),
        ("[ RUN      ] A.a\nprinted[  FAILED  ] A.a (1 ms)\n" + ENDED, 1, [("A.a", "failed", "")]),
        ('[ RUN      ] A.a/0\n[  FAILED  ] A.a/0, where GetParam() = "\n", 2 (1 ms)\n' + ENDED, 1, [("A.a/0", "failed", "")]),
        ("[ RUN      ] A.a\n[  SKIPPED ] A.a (1 ms)\n" + ENDED, 0, [("A.a", "failed", "a skip")]),
        ("[ RUN      ] A.a\n[  FAILED  ] A.a (1 ms)\n" + ENDED, -11, [("A.a", "failed", ""), ("*", "failed", "a crash")]),
        ("[ RUN      ] A.a\n[       OK ] A.a (1 ms)\n", 0, [("A.a", "passed", ""), ("*", "failed", "a crash")]),
        ("[ RUN      ] A.a\n==1==ERROR: AddressSanitizer: x\n", 1, [("A.a", "failed", "a sanitizer's report")]),
    ],
    ids=["passed", "after text", "failed after text", "parameter of two lines", "skipped", "crash at the end", "exit before the end", "report"],
)
def test_what_a_program_printed_is_read(text, status, expected):
    run = programs.Run("unit", programs.found("test")[0], "test", 0, 1, 1, [])
    cases = list(run._cases(text, status, ""))
    names = [case.command[-1].removeprefix("--gtest_filter=") for case in cases]
    assert [(name, case.outcome, case.never_forgiven) for name, case in zip(names, cases)] == expected


class Counted:
    """A command that fails the first `failures` times."""

    def __init__(self, directory, failures):
        self._file = directory / "runs"
        text = f"echo >> {self._file}; test $(wc -l < {self._file}) -gt {failures}"
        self.command = ("sh", "-c", text)

    def runs(self):
        return len(self._file.read_text().splitlines()) if self._file.exists() else 0


@pytest.fixture
def session(tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "LOGS", tmp_path)
    monkeypatch.setattr(commands, "ROOT", tmp_path)
    (tmp_path / "build").mkdir()
    return Session("gate", 7, 60)


def failed(name="a", command=("true",), **more):
    return Case("stage", name, "failed", 1, command, **more)


def play(session, *cases):
    session.stage("stage", 1, lambda name, deadline: iter(cases))


def end(session, capsys, touched=frozenset()):
    status = session.report(touched)
    return status, capsys.readouterr().out.splitlines()


def test_a_case_that_passes_twice_alone_is_unstable_and_named_with_its_seed_and_command(session, tmp_path, capsys):
    counted = Counted(tmp_path, 0)
    play(session, Case("stage", "b", "passed"), failed(command=counted.command))
    status, lines = end(session, capsys)
    assert status == 0
    assert lines[-1] == "1 passed, 0 failed, 1 unstable"
    assert next(line for line in lines if line.startswith("UNSTABLE a, seed 7: PERSIA_TEST_SEED=7 sh -c "))
    assert counted.runs() == 2


@pytest.mark.parametrize("failures, runs", [(1, 1), (9, 1)])
def test_a_case_that_fails_once_more_fails_the_gate(session, tmp_path, capsys, failures, runs):
    counted = Counted(tmp_path, failures)
    play(session, failed(command=counted.command))
    status, lines = end(session, capsys)
    assert (status, lines[-1], counted.runs()) == (1, "0 passed, 1 failed", runs)
    assert any(line.startswith("FAILED a (again when run alone), seed 7: PERSIA_TEST_SEED=7 sh -c ") for line in lines)


def test_a_case_that_fails_only_after_others_fails_the_gate(session, tmp_path, capsys):
    counted = Counted(tmp_path, 9)
    play(session, failed(command=("true",), in_order=counted.command))
    status, lines = end(session, capsys)
    assert (status, counted.runs()) == (1, 1)
    assert any(line.startswith("FAILED a (again in its order, though not alone), seed 7: PERSIA_TEST_SEED=7 sh -c ") for line in lines)


ORDERED = """
seen = []
def test_a(): seen.append(1)
def test_b(): assert not seen
"""


def test_a_test_of_pytest_is_run_again_after_the_same_others(python_tests, tmp_path):
    commands_of = python_tests(ORDERED, lambda case: (case.command, case.in_order))
    environment = commands.environment(PERSIA_TEST_CASES=tmp_path / "again")
    alone, in_order = (subprocess.run(words, env=environment, cwd=tmp_path, check=False, capture_output=True).returncode for words in commands_of["test_b"])
    assert (alone, in_order) == (0, 1)


def test_a_case_of_a_program_is_run_again_after_the_same_others():
    first = cases_of("agent_base_test", "--gtest_filter=*Log*")
    done = subprocess.run(first[0].in_order, cwd=commands.ROOT, check=True, capture_output=True, text=True)
    assert [line.split()[-1] for line in done.stdout.splitlines() if line.startswith("[ RUN")] == [case.name.split()[1] for case in first]


@pytest.mark.parametrize(
    "case, touched, reason",
    [
        (failed(never_forgiven="a crash"), frozenset(), "a crash"),
        (failed(command=()), frozenset(), ""),
        (failed(folders=("agent/net", "lib")), frozenset({"agent/web", "agent/net"}), "the change touches agent/net"),
    ],
)
def test_what_is_not_forgiven_is_not_run_again(session, capsys, case, touched, reason):
    play(session, case)
    status, lines = end(session, capsys, touched)
    assert status == 1
    assert any(line.startswith(f"FAILED a{f' ({reason})' if reason else ''}, seed 7") for line in lines)


@pytest.mark.parametrize("number, status", [(3, 0), (4, 1)])
def test_three_cases_may_be_unstable(session, capsys, number, status):
    play(session, *(failed(str(each)) for each in range(number)))
    assert end(session, capsys)[0] == status


def test_a_stage_at_its_limit_is_counted_as_far_as_it_came(session, tmp_path, capsys):
    def slow(name, deadline):
        yield Case(name, "first", "passed")
        commands.run(["sleep", "60"], tmp_path / "log", time.monotonic() + 0.1)
        yield Case(name, "never", "passed")

    assert not session.stage("slow", 1, slow)
    status, lines = end(session, capsys)
    assert (status, lines[-1]) == (1, "1 passed, 1 failed")
    assert any("slow: 1 passed, 1 failed, ended at its time limit" in line for line in lines)


@pytest.mark.parametrize("error", [None, OSError("no disk")])
def test_a_stage_without_a_case_and_an_error_of_the_gate_are_reported_as_failures(session, capsys, error):
    def action(name, deadline):
        yield from ()
        if error:
            raise error

    assert not session.stage("stage", 1, action)
    status, lines = end(session, capsys)
    assert (status, lines[-1]) == (1, "0 passed, 1 failed")


def test_a_command_at_its_deadline_takes_its_children_with_it(tmp_path):
    with pytest.raises(commands.TimeOver):
        commands.run(["sh", "-c", f"sleep 61 & echo $! > {tmp_path}/pid; wait"], tmp_path / "log", time.monotonic() + 1)
    child = int((tmp_path / "pid").read_text())
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize("width", [1, 2])
def test_a_session_at_its_limit_ends_what_its_fixtures_have_started(python_tests, tmp_path, width):
    text = f"""
import time
import pytest
@pytest.fixture
def server():
    yield
    open({str(tmp_path / "ended")!r}, "w")
def test_a(server):
    open({str(tmp_path / "began")!r}, "w")
    time.sleep(60)
"""
    with pytest.raises(commands.TimeOver):
        python_tests(text, width=width, seconds=5)
    assert (tmp_path / "began").exists() and (tmp_path / "ended").exists()


SIGNALLED = """
import sys, threading, time
sys.path.insert(0, {gate!r})
import commands
from pathlib import Path
commands.end_on_signals()
def run():
    try:
        commands.run(["sh", "-c", "echo $$ > {directory}/pid.new; mv {directory}/pid.new {directory}/pid; sleep 61"], Path("{directory}/log"), time.monotonic() + 60)
    except commands.TimeOver:
        pass
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_commands_of_all_threads(tmp_path, number):
    text = SIGNALLED.format(gate=str(HERE), directory=tmp_path)
    with subprocess.Popen([sys.executable, "-c", text]) as gate:
        while not (tmp_path / "pid").exists():
            time.sleep(0.01)
        gate.send_signal(number)
        assert gate.wait(30) == 128 + number
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_parts_of_the_night_run_for_what_they_guard():
    assert changes.night_parts(["lib/src/a.cc", "README.md"]) == []
    assert changes.night_parts(["agent/Dockerfile", "dashboards/a.json"]) == ["boards", "docker"]
    for name in ("docker-compose.yml", "config/compose/swarm.yml"):
        assert changes.night_parts([name]) == ["docker"] and (commands.ROOT / name).exists()


def test_a_failed_build_ends_the_run():
    import plans

    class Recorded(Session):
        def stage(self, name, *_, **__):
            return name != "build of test"

    with pytest.raises(Stop):
        plans.test(Recorded("test", 1, 60))


def test_words_that_no_command_knows_are_named():
    done = subprocess.run([sys.executable, HERE, "night", "dokcer"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "unknown suite 'dokcer'" in done.stderr
