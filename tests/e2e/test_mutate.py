"""`./run mutate`: its operators, what it draws, and the whole command on a small project."""

import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from servers import ROOT, wait_until

MUTATE = ROOT / "tests/mutate"
sys.path.insert(0, str(MUTATE))

import drawing  # noqa: E402
import layers  # noqa: E402
import operators  # noqa: E402
import tree as trees  # noqa: E402

pytestmark = pytest.mark.timeout(1500)

FUNCTION = """\
void Give(int a, int b) {
%s
}
"""


def mutants(operator, code, around=FUNCTION):
    """(old, new) of each mutation of these lines by this operator, without the indentation."""
    text = around % textwrap.indent(textwrap.dedent(code).strip("\n"), "  ")
    found = [mutation for mutation in operators.mutations("agent/base/x.cc", text) if mutation.operator == operator]
    for mutation in found:
        assert mutation.apply(text) != text
        assert len(mutation.apply(text).split("\n")) == len(text.split("\n")), "later lines keep their numbers"
    return [(mutation.old.strip(), mutation.new.strip()) for mutation in found]


def news(operator, code):
    return [new for _, new in mutants(operator, code)]


@pytest.mark.parametrize(
    "operator, code, expected",
    [
        ("boundary", "return a < b;", ["return a <= b;"]),
        ("boundary", "return a >= b && b > 1;", ["return a >= b && b >= 1;", "return a > b && b > 1;"]),
        ("boundary", "std::vector<int> c(a << b);", []),
        ("boundary", "return 1'000 < a && b < 2'000;", ["return 1'000 <= a && b < 2'000;", "return 1'000 < a && b <= 2'000;"]),
        ("boundary", "Give(c < d);  // a < b", ["Give(c <= d);  // a < b"]),
        ("boundary", "Give(/* a < b */, c < d);", ["Give(/* a < b */, c <= d);"]),
        ("boundary", 'Give("a < b", c < d);', ['Give("a < b", c <= d);']),
        ("boundary", 'Give(R"(a < b)", c < d);', ['Give(R"(a < b)", c <= d);']),
        ("boundary", "Give('<', c < d);", ["Give('<', c <= d);"]),
        ("equality", "return a == b;", ["return a != b;"]),
        ("condition", "if (a && Ask(b)) return;", ["if (!(a && Ask(b))) return;"]),
        ("condition", "} else if (a > b) {", ["} else if (!(a > b)) {"]),
        ("condition", "while (more) Take();", ["while (!(more)) Take();"]),
        ("condition", "if (const auto c = Find(a); c != end) return;", ["if (const auto c = Find(a); !(c != end)) return;"]),
        ("condition", "if (const int* c = Find(a)) return;", []),
        ("logic", "return a && b;", ["return a || b;"]),
        ("logic", "void Take(T&& value);", []),
        ("arithmetic", "c = a + b * 2;", ["c = a - b * 2;", "c = a + b / 2;"]),
        ("arithmetic", "c += 2;", ["c -= 2;"]),
        ("arithmetic", 'text = "a" + b;', []),
        ("constant", "return a[0] + 1'000u;", ["return a[1] + 1'000u;", "return a[0] + 1001u;"]),
        ("constant", "Wait(seconds(30), 0x10, 2.5);", []),
        ("limit", "constexpr size_t kMaxNames = 1 << 4;", ["constexpr size_t kMaxNames = (1 << 4) * 2;"]),
        ("limit", "const size_t names = 4;", []),
        ("growth", "pause *= 2;", ["pause *= 1;"]),
        ("boolean", "done = true;", ["done = false;"]),
        ("boolean", "done = is_true;", []),
        ("extreme", "return std::min(a, b);", ["return std::max(a, b);"]),
        ("dropped call", "Save();", [";"]),
        ("dropped call", "file_->Save(a, b[0]);", [";"]),
        ("dropped call", "if (a > b) Save();", ["if (a > b) {}"]),
        ("dropped call", "for (const int c : all) Save(c);", ["for (const int c : all) {}"]),
        ("dropped call", "while (!done) Wait();", []),  # would spin
        ("dropped call", "const MutexLock lock(mutex_);", []),
        ("dropped call", "c = Save();", []),
        ("dropped call", "return Save();", []),
        ("dropped call", "Call(a,\n     b);", []),
        ("dropped assignment", "unsaved_ = true;", [";"]),
        ("dropped assignment", "if (a) ++count_;", ["if (a) {}"]),
        ("dropped assignment", "int c = 1;", []),
        ("swapped", "Save();\nunsaved_ = false;", ["unsaved_ = false;\n  Save();"]),
        ("swapped", "Save();\nRename();\nint c = 0;", ["Rename();\n  Save();"]),
        ("swapped", "a = 1;\nb = 2;", []),
        ("swapped", "if (a) Save();\nRename();", []),
        ("early out", "if (a < b) return;", ["if (a < b) {}"]),
        ("early out", "for (int c : all) {\n  if (c == a) continue;\n}", ["if (c == a) {}"]),
        ("early out", "if (a) {\n  Log();\n  return Error{};\n}\nSave();", [";"]),
        ("early out", "Save();\nreturn a;", []),
        ("sync", "if (fdatasync(fd.get()) != 0) return;", ["if (0 != 0) return;"]),
        ("sync", "::fsync(fd);", ["0;"]),
        ("memory order", "x.store(1, std::memory_order_release);", ["x.store(1, std::memory_order_relaxed);"]),
        ("memory order", "x.store(1, std::memory_order_relaxed);", []),
    ],
)
def test_an_operator_makes_its_faults_and_no_others(operator, code, expected):
    assert news(operator, code) == expected


def test_every_operator_is_tested():
    (table,) = [mark for mark in test_an_operator_makes_its_faults_and_no_others.pytestmark if mark.name == "parametrize"]
    assert {case[0] for case in table.args[1] if case[2]} == set(operators.OPERATORS)


def test_preprocessor_lines_are_no_code():
    text = "#if A < \\\n  B < C\n#endif\nbool Less() { return a < b; }\n"
    assert [mutation.line for mutation in operators.mutations("x.cc", text) if mutation.operator == "boundary"] == [4]


@pytest.fixture(scope="module")
def product():
    return trees.sources_of(ROOT)


@pytest.fixture(scope="module")
def found(product):
    return drawing.all_mutations(product)


def test_the_same_seed_draws_the_same(found):
    first, second, other = (drawing.draw(found, seed)[:200] for seed in (1, 1, 2))
    assert first == second
    assert len(set(first) & set(other)) < 20


def test_an_edit_of_one_file_leaves_the_mutants_of_others(product, found):
    edited = "agent/base/timing.cc"
    others = [mutation for mutation in found if mutation.path != edited]
    edit = list(operators.mutations(edited, product[edited] + "void Add() {\n  a < b;\n}\n"))
    before, after = drawing.draw(found, 1)[:200], drawing.draw(others + edit, 1)[:210]
    assert [mutation for mutation in before if mutation.path != edited and mutation not in after] == []


def test_operators_are_drawn_as_often_as_they_say(found):
    drawn = collections.Counter(mutation.operator for seed in range(10) for mutation in drawing.draw(found, seed)[:100])
    assert sum(share for share, _ in operators.OPERATORS.values()) == 100
    for name, (share, _) in operators.OPERATORS.items():
        if share >= 4:  # rare ones vary, or have only a few places
            assert share * 10 * 0.6 < drawn[name] < share * 10 * 1.5, name


def test_every_folder_has_a_contract(product):
    assert {layers.folder_of(path) for path in product} == set(layers.FOLDERS)
    for modules in layers.CONTRACT.values():
        for module in modules.split():
            assert (ROOT / f"tests/e2e/{module}.py").is_file(), module


SOURCE = """\
#include "guarded.h"

#include <algorithm>

bool ByOwnTest(int a, int b) { return a < b; }
bool ByOtherTest(int a, int b) { return a < b; }
bool ByModel(int a, int b) { return a < b; }
bool ByContract(int a, int b) { return a < b; }
bool ByCrash(int a, int b) { return a < b; }
bool ByNothing(int a, int b) { return a < b; }
int SameCode(int a) { return std::min(a, a); }
static_assert(std::max(2, 3) == 3);
constexpr int kWidest = std::max(
    int{sizeof(short)}, int{sizeof(long)});
static_assert(kWidest == sizeof(long));
unsigned Forever(unsigned a, unsigned b) {
  do {
    a *= b;
  } while (a < 1000u);
  return a;
}
"""
CASES = {
    "ByOwnTest": ("killed", "unit tests of the folder: Guarded.Own"),
    "ByOtherTest": ("killed", "unit tests of other folders: Guarded.Other"),
    "ByModel": ("killed", "model: model, 5000 histories"),
    "ByContract": ("killed", "contract: tests/e2e/test_"),
    "ByCrash": ("killed", "crash or fault tests: tests/crash/test_crash.py::test_crash"),
    "ByNothing": ("survived", ""),
    "SameCode": ("same code", ""),
    "constexpr": ("did not compile", ""),
    "a *= b": ("killed", "unit tests of the folder: Guarded.Ends, timed out after "),
}
UNIT = '#include <gtest/gtest.h>\n\n#include "guarded.h"\n\n'
PROGRAM = '#include "guarded.h"\n\nint main() { return %s(1, 1) ? 1 : 0; }\n'
TEST_OF_PROGRAM = """\
import os
import subprocess


def test_%s():
    subprocess.run([os.environ["PERSIA_BUILD_DIR"] + "/%s"], check=True)
"""
FILES = {
    ".gitignore": "/build/\n",
    "agent/base/guarded.h": "#pragma once\n"
    + "".join(f"bool {name}(int a, int b);\n" for name in CASES if name.startswith("By"))
    + "int SameCode(int a);\nunsigned Forever(unsigned a, unsigned b);\n",
    "agent/base/guarded.cc": SOURCE,
    "tests/unit/base/base_test.cc": UNIT
    + "TEST(Guarded, Own) { EXPECT_FALSE(ByOwnTest(1, 1)); }\nTEST(Guarded, Ends) { EXPECT_EQ(Forever(1, 10), 1000U); }\n",
    "tests/unit/net/net_test.cc": UNIT + "TEST(Guarded, Other) { EXPECT_FALSE(ByOtherTest(1, 1)); }\nTEST(Guarded, Broken) { FAIL(); }\n",
    "tests/model/main.cc": PROGRAM % "ByModel",
    "tests/e2e/worker/main.cc": PROGRAM % "ByContract",
    **{f"tests/e2e/test_{name}.py": TEST_OF_PROGRAM % (name, "agent/cli/persia-metrics-agent") for name in ("log", "exec")},
    "tests/crash/test_crash.py": TEST_OF_PROGRAM % ("crash", "tests/crash/crash_states"),
    "tests/crash/main.cc": PROGRAM % "ByCrash",
    "tests/e2e/test_reload.py": "def test_reload():\n    assert False\n",
    "CMakePresets.json": json.dumps(
        {
            "version": 6,
            "configurePresets": [
                {
                    "name": "mutate",
                    "generator": "Ninja",
                    "binaryDir": "${sourceDir}/build/mutate",
                    "cacheVariables": {"CMAKE_BUILD_TYPE": "Release", "CMAKE_CXX_FLAGS_RELEASE": "-O1"},
                }
            ],
        }
    ),
    "CMakeLists.txt": """\
cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(GTest REQUIRED)
add_library(guarded STATIC agent/base/guarded.cc)
target_include_directories(guarded PUBLIC agent/base)
function(program NAME FOLDER SOURCE)
  add_executable(${NAME} ${SOURCE})
  target_link_libraries(${NAME} PRIVATE guarded ${ARGN})
  set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${FOLDER})
endfunction()
program(base_test tests/unit/base tests/unit/base/base_test.cc GTest::gtest_main)
program(net_test tests/unit/net tests/unit/net/net_test.cc GTest::gtest_main)
program(model tests/model tests/model/main.cc)
program(crash_states tests/crash tests/crash/main.cc)
program(persia-metrics-agent agent/cli tests/e2e/worker/main.cc)
program(persia-metrics-agentd agent/cli tests/e2e/worker/main.cc)
program(e2e_worker tests/e2e/worker tests/e2e/worker/main.cc)
program(chaos_worker tests/chaos/worker tests/e2e/worker/main.cc)
foreach(TARGET persia_metrics_python persia_metrics_python_sources %s)
  add_custom_target(${TARGET})
endforeach()
"""
    % " ".join(layers.FAULT_PROGRAMS),
}
# The command, with less patience for a mutant that hangs.
COMMAND = """
import runpy, sys
sys.path.insert(0, "tests/mutate")
import layers
layers.PATIENCE = 3
runpy.run_path("tests/mutate", run_name="__main__")
"""


@pytest.fixture
def project(tmp_path):
    """A project of one source, whose mutants meet every outcome."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    shutil.copytree(MUTATE, tmp_path / "tests/mutate", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(["git", "init", "-q", tmp_path], check=True, timeout=60)
    return tmp_path


def start(project, *flags):
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, *flags],
        cwd=project,
        stdin=subprocess.DEVNULL,
        stdout=(project / "build/output").open("w"),
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def results_of(project):
    """(outcome, by) of the finished mutants, by the function or line that they are in."""
    drawn = {mutation.key: mutation for mutation in operators.mutations("agent/base/guarded.cc", SOURCE)}
    found = {}
    for line in (project / "build/mutate/results.jsonl").read_text().splitlines():
        result = json.loads(line)
        for case in CASES:
            if result["key"] in drawn and case in drawn[result["key"]].old:
                found[case] = (result["outcome"], result["by"])
    return found


def left_of(project):
    """The processes that work in the project's directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "cwd").startswith(str(project)):
                found.append(process.name)
        except OSError:
            continue  # it has ended
    return found


def test_every_mutant_meets_its_layer_and_an_interrupted_run_goes_on(project):
    (project / "build").mkdir()
    process = start(project, "--count", "100")
    wait_until(lambda: process.poll() is not None or len(results_of(project)) >= 3, "the first mutants", 400)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130, (project / "build/output").read_text()
    assert left_of(project) == []
    tree = project / "build/mutate/tree"
    assert (tree / "agent/base/guarded.cc").read_text() == SOURCE
    interrupted = (project / "build/output").read_text()
    assert "the same command goes on from here" in interrupted
    before = (project / "build/mutate/results.jsonl").read_text()

    process = start(project, "--count", "100")
    assert process.wait(400) == 1, (project / "build/output").read_text()
    output = (project / "build/output").read_text()
    assert (project / "build/mutate/results.jsonl").read_text().startswith(before)
    results = results_of(project)
    for case, (outcome, by) in CASES.items():
        assert results[case][0] == outcome and results[case][1].startswith(by), (case, results[case])
    for case in ("Guarded.Broken", "tests/e2e/test_reload.py::test_reload"):
        assert f"without a mutation fails, and is left out: {case}" in interrupted + output
    survivors = output[output.index("\nsurvivors:") :]
    assert "- bool ByNothing(int a, int b) { return a < b; }" in survivors and "ByOwnTest" not in survivors
    assert left_of(project) == []

    # A test that finds the survivor: only that one runs again, and the bound is met.
    with (project / "tests/unit/net/net_test.cc").open("a") as file:
        file.write("TEST(Guarded, Now) { EXPECT_FALSE(ByNothing(1, 1)); }\n")
    process = start(project, "--count", "100", "--again")
    assert process.wait(400) == 0, (project / "build/output").read_text()
    assert results_of(project)["ByNothing"] == ("killed", "unit tests of other folders: Guarded.Now")


def test_a_path_without_sources_is_refused_and_named():
    answer = subprocess.run([sys.executable, MUTATE, "agent/nowhere"], capture_output=True, text=True, timeout=60)
    assert answer.returncode == 1 and '"agent/nowhere"' in answer.stderr
