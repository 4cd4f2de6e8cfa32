"""How programs are built with the library: compilers, standards, flags, CMake's three ways and pkg-config."""

import json
import os
import re
import shutil
import subprocess

import pytest
from conftest import BUILD, environment
from servers import ROOT

# Those of Debian 12 and 13 that are installed; c++ always is.
COMPILERS = [
    name
    for name in ("c++", *(f"g++-{v}" for v in range(9, 16)), "clang++", *(f"clang++-{v}" for v in range(13, 20)))
    if shutil.which(name)
]
STRICT = (
    "-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast -Wnon-virtual-dtor -Wcast-align -Werror"
    " -fno-exceptions -fno-rtti"
).split()
STRICT_IN_C = "-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Werror".split()
# Each template and inline function of the headers, in C++17.
PROGRAM = (ROOT / "tests/e2e/consumer/all_headers.cc").read_text()
PROGRAM_IN_C = """
#include <persia/metrics/c.h>
int main(void) {
  persia_metrics_counter_t* counter = persia_metrics_counter("my_app", "batches", NULL);
  persia_metrics_counter_add(counter, 2);
  return persia_metrics_counter_value(counter) == 2 ? 0 : 1;
}
"""
LISTS = """
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES C CXX)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
{way}
add_executable(consumer main.cc)
target_compile_options(consumer PRIVATE {flags})
target_link_libraries(consumer PRIVATE persia::metrics)
"""
WAYS = {
    "find_package": "find_package(persia_metrics REQUIRED)",
    "add_subdirectory": f"add_subdirectory({ROOT} persia_metrics)",
    "FetchContent": f"include(FetchContent)\nFetchContent_Declare(persia_metrics SOURCE_DIR {ROOT})\nFetchContent_MakeAvailable(persia_metrics)",
}


def attempt(*command, **env):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=500, env=environment(**env) if env else None)


def run(*command, **env):
    result = attempt(*command, **env)
    assert result.returncode == 0, f"{command}:\n{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    prefix = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", BUILD, "--prefix", prefix)
    return prefix


@pytest.mark.parametrize("standard", ["c++17", "c++20"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_headers_compile_without_a_warning(compiler, standard, tmp_path):
    (tmp_path / "main.cc").write_text(PROGRAM)
    run(compiler, f"-std={standard}", *STRICT, "-fsyntax-only", f"-I{ROOT}/lib/include", tmp_path / "main.cc")


def examples():
    """The programs that newcomers copy, by place."""
    yield "examples/quickstart", (ROOT / "examples/quickstart/main.cc").read_text()
    first_page = (ROOT / "docs/reference/main.md").read_text()
    yield "docs/reference", "".join(f"{line[4:]}\n" for line in first_page.splitlines() if line.startswith("    "))


@pytest.mark.parametrize(("place", "program"), examples(), ids=[place for place, _ in examples()])
def test_examples_need_no_more_than_cxx17(place, program, tmp_path):
    assert "int main" in program, place
    (tmp_path / "main.cc").write_text(program)
    run("c++", "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", f"-I{ROOT}/lib/include", tmp_path / "main.cc")


@pytest.mark.parametrize("header", sorted((ROOT / "lib/include/persia/metrics").rglob("*.h")), ids=lambda path: path.name)
def test_each_header_compiles_by_itself(header, tmp_path):
    (tmp_path / "main.cc").write_text(f"#include <{header.relative_to(ROOT / 'lib/include')}>\n")
    run("c++", "-std=c++17", *STRICT, "-fsyntax-only", f"-I{ROOT}/lib/include", tmp_path / "main.cc")


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ('Family<int>("g", "n");', "a Family has Counters"),
        ('Family<Counter>("g", "n", {0.5, 1});', "no matching function"),
        ('Family<Stream>("g", "n", GaugeMerge::kSum);', "no matching function"),
        ('Counter("g", "n").Increment("1");', "no matching function|cannot convert"),
        ('Histogram("g", "n", {"a", "b", "c"});', "no matching function"),
        ('InPhase{Phase("data")};', "nodiscard"),
        ('ScopedTimer{TimeCost("g", "n")};', "nodiscard"),
        ('Prof("key");', "nodiscard"),
        ('Profiled("key", [] {});', "nodiscard"),
        ("testing::Scope();", "nodiscard"),
    ],
)
def test_a_wrong_use_does_not_compile(statement, error, tmp_path):
    frame = "#include <persia/metrics/metrics.h>\n#include <persia/metrics/testing.h>\nusing namespace persia::metrics;\nint main() { %s }\n"
    command = ("c++", "-std=c++17", "-Werror", "-fsyntax-only", f"-I{ROOT}/lib/include", tmp_path / "main.cc")
    (tmp_path / "main.cc").write_text(frame % 'Family<Gauge>("g", "n", GaugeMerge::kSum); Family<TimeCost>("g", "n", {0.5, 1});')
    run(*command)
    (tmp_path / "main.cc").write_text(frame % statement)
    result = attempt(*command)
    assert result.returncode != 0 and re.search(error, result.stderr), result.stderr


@pytest.mark.parametrize("way", WAYS)
def test_a_program_of_cxx17_builds_by_each_way_of_cmake(way, prefix, tmp_path):
    (tmp_path / "main.cc").write_text(PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(LISTS.format(way=WAYS[way], flags=" ".join(STRICT)))
    build = tmp_path / "build"
    options = ["-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Debug"]
    run("cmake", "-S", tmp_path, "-B", build, *options)
    run("cmake", "--build", build, "--target", "consumer")
    run(build / "consumer")
    # The library's own flags and standard are not those of the program.
    commands = json.loads((build / "compile_commands.json").read_text())
    (own,) = [entry["command"] for entry in commands if entry["file"].endswith("/main.cc") and str(tmp_path) in entry["file"]]
    assert "-std=c++17" in own and "c++20" not in own and "persia_build_flags" not in own
    assert own.count("-Wall") == 1


@pytest.mark.parametrize(
    ("compiler", "source", "text"),
    [(["cc", "-std=c99", *STRICT_IN_C], "main.c", PROGRAM_IN_C), (["c++", "-std=c++17", *STRICT], "main.cc", PROGRAM)],
    ids=["c99", "c++17"],
)
def test_a_program_builds_with_pkg_config_wherever_the_tree_is(prefix, tmp_path, compiler, source, text):
    (tmp_path / source).write_text(text)
    moved = shutil.copytree(prefix, tmp_path / "moved", symlinks=True)
    (file,) = moved.rglob("persia_metrics.pc")
    flags = run("pkg-config", "--cflags", "--libs", "persia_metrics", PKG_CONFIG_PATH=str(file.parent)).split()
    run(*compiler, tmp_path / source, "-o", tmp_path / "main", *flags, f"-Wl,-rpath,{file.parent.parent}")
    run(tmp_path / "main")


def test_a_program_does_not_start_with_a_library_of_another_version(prefix, tmp_path):
    """The version of the symbols says which layout the inlined calls know."""
    (tmp_path / "main.c").write_text(PROGRAM_IN_C)
    (library,) = [path for path in prefix.rglob("libpersia_metrics.so.*") if not path.is_symlink()]
    soname = re.search(r"SONAME\).*\[(.*)\]", run("readelf", "-d", library))[1]
    for name in (soname, "libpersia_metrics.so"):
        shutil.copy(library, tmp_path / name)
    run("cc", f"-I{prefix}/include", tmp_path / "main.c", "-o", tmp_path / "main", f"-L{tmp_path}", "-lpersia_metrics", "-Wl,-rpath,$ORIGIN")
    run(tmp_path / "main")
    renamed = library.read_bytes().replace(b"PERSIA_METRICS_0.1\0", b"PERSIA_METRICS_0.2\0")
    assert renamed != library.read_bytes()
    (tmp_path / soname).write_bytes(renamed)
    result = attempt(tmp_path / "main")
    assert result.returncode != 0 and "PERSIA_METRICS_0.1" in result.stderr, result.stderr


def test_a_program_does_not_link_with_another_layout(prefix, tmp_path):
    """The headers' inline namespace names the layout that the inlined calls know."""
    headers = shutil.copytree(ROOT / "lib/include", tmp_path / "include")
    for header in headers.rglob("*.h"):
        header.write_text(header.read_text().replace("abi_1", "abi_2"))
    (tmp_path / "main.cc").write_text(PROGRAM)
    (library,) = prefix.rglob("libpersia_metrics.a")
    result = attempt("c++", "-std=c++17", f"-I{headers}", tmp_path / "main.cc", library, "-o", tmp_path / "main", "-pthread")
    assert result.returncode != 0 and "abi_2::internal::tls_lane" in result.stderr, result.stderr[-2000:]


def test_the_library_alone_needs_nothing_to_build(tmp_path):
    options = ["-G", "Ninja", "-DPERSIA_METRICS_BUILD_AGENT=OFF", "-DPERSIA_METRICS_BUILD_EXAMPLES=OFF", "-DPERSIA_METRICS_BUILD_TESTS=OFF"]
    options += ["-DCMAKE_DISABLE_FIND_PACKAGE_prometheus-cpp=ON", "-DCMAKE_BUILD_TYPE=Release"]
    run("cmake", "-S", ROOT, "-B", tmp_path, *options, CCACHE_DISABLE="1", PATH=os.environ["PATH"])
    run("cmake", "--build", tmp_path, CCACHE_DISABLE="1", PATH=os.environ["PATH"])
    (library,) = [path for path in tmp_path.rglob("libpersia_metrics.so.*") if not path.is_symlink()]
    needed = set(re.findall(r"NEEDED\).*\[(.*?)\.so", run("readelf", "-d", library)))
    assert needed <= {"libc", "libstdc++", "libgcc_s", "libm", "ld-linux-x86-64", "ld-linux-aarch64"}, needed
