"""A test that needs more than the machine allows is not run, and `./run` counts it neither as passed nor as failed."""

import subprocess
from pathlib import Path

import needs
import pytest
from conftest import PYTHON, environment
from servers import ROOT

SESSION = """
import needs
import pytest

needs._PROBES |= {"moon": lambda: "no rocket", "earth": lambda: ""}

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

CTESTS = """
add_test(passes true)
add_test(fails false)
add_test(is_not_there no_such_program)
add_test(is_disabled true)
set_tests_properties(is_disabled PROPERTIES DISABLED TRUE)
add_test(is_skipped echo "needs something")
set_tests_properties(is_skipped PROPERTIES SKIP_REGULAR_EXPRESSION "needs")
"""


def session(directory, text, **extra):
    """Runs pytest on this text. Returns its exit code and output."""
    (directory / "test_session.py").write_text(text)
    env = environment(PYTHONPATH=str(Path(needs.__file__).parent), **extra)
    command = [PYTHON, "-m", "pytest", "-q", "-p", "needs", "-p", "no:cacheprovider", "--junitxml=session.xml", "test_session.py"]
    done = subprocess.run(command, cwd=directory, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def sums(file):
    """Passed, failed, and not run."""
    return subprocess.run([PYTHON, ROOT / "tests/sum_junit.py", file], check=True, capture_output=True, text=True, timeout=60).stdout


def test_a_need_that_is_not_met_is_told_at_the_end_and_counted(tmp_path):
    code, output = session(tmp_path, SESSION)
    assert code == 1
    assert "\nnot run: 2 tests need moon: no rocket\n" in output
    assert sums(tmp_path / "session.xml") == "1 3 2\n"


def test_where_every_need_is_to_be_met_an_unmet_one_is_a_failure(tmp_path):
    code, output = session(tmp_path, SESSION, PERSIA_TEST_EVERY_NEED="1")
    assert code == 1
    assert "every need is to be met here, and moon is not: no rocket" in output
    assert sums(tmp_path / "session.xml") == "1 5 0\n"


@pytest.mark.parametrize("mark, said", [('needs("mon")', "needs mon: known needs are fuse, memory-cgroup, "), ("needs()", "needs nothing: ")])
def test_a_need_that_is_not_known_ends_the_run(tmp_path, mark, said):
    code, output = session(tmp_path, f"import pytest\n\n@pytest.mark.{mark}\ndef test_one():\n    pass\n")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert said in output


def test_of_ctest_only_what_passed_did_not_fail(tmp_path):
    (tmp_path / "CTestTestfile.cmake").write_text(CTESTS)
    subprocess.run(["ctest", "--output-junit", "session.xml"], cwd=tmp_path, capture_output=True, timeout=60)
    assert sums(tmp_path / "session.xml") == "1 4 0\n"
