"""The check of includes finds an omission that is planted, and gives no alarm for what only looks like one."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import check_includes

ROOT = check_includes.ROOT


@pytest.fixture
def check(tmp_path):
    """What the check says of a file of this text: "line name header" of each complaint."""

    def check(text, name="a.cc"):
        (tmp_path / name).write_text(text)
        return [f"{line} {name} {header}" for line, name, header in sorted(check_includes.complaints(tmp_path / name))]

    return check


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("\nstd::uint64_t n;", "2 std::uint64_t cstdint"),
        ("uint64_t n;", "1 uint64_t cstdint"),
        ("int n = 1'000; uint64_t m = 1'000;", "1 uint64_t cstdint"),
        ("auto s = std::string();", "1 std::string string"),
        ("std::ranges::sort(v);", "1 std::ranges::sort algorithm"),
        ("#include <cstdint>\nsize_t n;", "2 size_t cstddef"),
        ("/* text\n */ if (errno == 1) {}", "2 errno cerrno"),
        ("return getpid();", "1 getpid unistd.h"),
        ("x = ::getpid();", "1 getpid unistd.h"),
        ("!memcmp(a, b, c);", "1 memcmp cstring"),
        ("// #include <vector>\nstd::vector<int> v;", "2 std::vector vector"),
    ],
)
def test_finds_an_omission(check, text, complaint):
    assert check(text) == [complaint]


@pytest.mark.parametrize(
    "text",
    [
        "// std::string, size_t, getpid()",
        '"std::string"; R"(std::vector)"; \'"\'; "std::map"',
        "a.errno_; a->size_t; kernel::getpid(); a.getpid(); persia::std_string::vector;",
        "int getpid(); x = getpid();",
        "const auto raise = [] {}; raise();",
        "#include <stdint.h>\nuint64_t n;",
        "#include <map>\nstd::pair<int, int> p;",
        "#ifdef A\n#  include <vector>\n#endif\nstd::vector<int> v;",
    ],
)
def test_gives_no_false_alarm(check, text):
    assert check(text) == []


def test_a_source_relies_on_its_own_header_only(check):
    check("#include <string>\n", "a.h")
    check("#include <vector>\n", "b.h")
    assert check('#include "a.h"\n#include "b.h"\nstd::string s; std::vector<int> v;') == ["3 std::vector vector"]


def test_a_c_program_includes_headers_of_c(check):
    assert check("uint64_t n;", "a.c") == ["1 uint64_t stdint.h"]


@pytest.mark.parametrize(("name", "header"), [("agent/files/durable_file.h", "optional"), ("lib/src/instruments/instruments.cc", "bit")])
def test_an_include_removed_from_the_tree_is_missed(check, name, header):
    text = (ROOT / name).read_text()
    assert check(text, Path(name).name) == [], "this file relies on nothing else"
    without = text.replace(f"#include <{header}>\n", "")
    assert {complaint.split()[2] for complaint in check(without, Path(name).name)} == {header}
