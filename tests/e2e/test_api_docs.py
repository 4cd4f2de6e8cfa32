"""docs/api.md: its programs compile, run, and export the same series in each language."""

import re
import subprocess

import pytest
from conftest import BUILD, PYTHON, PYTHON_PACKAGE, environment
from servers import ROOT, fetch, wait_until

TEXT = (ROOT / "docs/api.md").read_text()
LANGUAGES = ["cpp", "c", "python"]
COMPILERS = {"cpp": ["c++", "-std=c++17"], "c": ["cc", "-std=c99"]}
FLAGS = ["-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror", f"-I{ROOT}/lib/include"]
LIBRARY = [f"{BUILD}/lib/libpersia_metrics.a", "-lstdc++", "-lm", "-pthread"]


def blocks(language):
    found = re.findall(rf"```{language}\n(.*?)```", TEXT, re.S)
    assert found, f"docs/api.md has no block of {language}"
    return found


def compiled(language, source, directory):
    """The command of the program."""
    path = directory / f"main.{language}"
    path.write_text(source)
    if language == "python":
        return [PYTHON, path]
    program = directory / f"program_{language}"
    tests = ["-lgtest_main", "-lgtest"] if "gtest" in source else []
    command = [*COMPILERS[language], *FLAGS, path, "-o", program, *tests, *LIBRARY]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return [program]


def run(command, **env):
    env = environment(PYTHONPATH=str(PYTHON_PACKAGE), **env)
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stderr == ""
    return result.stdout


# The first one of each language runs below.
@pytest.mark.parametrize(("language", "number"), [(language, n) for language in LANGUAGES for n in range(1, len(blocks(language)))])
def test_each_program_runs(language, number, tmp_path):
    run(compiled(language, blocks(language)[number], tmp_path))


def exported(language, job, segments, tmp_path):
    """The lines of the page that the document's first program of this language causes."""
    directory = segments / language
    assert run(compiled(language, blocks(language)[0], tmp_path), PERSIA_METRICS_DIR=str(directory)) == "3 rows of users\n"
    agent = job.agent(f"--metrics-dir={directory}")
    wait_until(lambda: agent.metrics().one("my_app_rows_total", table="users") == 3, "the program's metrics")
    page = fetch(agent.url + "/metrics")[1]
    agent.stop()  # two agents of one job would add the label `agent`
    return [line for line in page.splitlines() if re.match(r"(# \w+ )?(my_app_|persia_events_total)", line)]


def test_the_program_exports_the_same_series_in_each_language(job, segments, tmp_path):
    job.name = "api"
    pages = {language: exported(language, job, segments, tmp_path) for language in LANGUAGES}
    assert len(pages["cpp"]) > 40  # buckets included
    for language, page in pages.items():
        assert page == pages["cpp"], language


def test_the_tables_have_no_empty_cell():
    rows = [line.strip("|").split("|") for line in TEXT.splitlines() if line.startswith("| ") and not line.startswith("| |")]
    assert len(rows) > 40
    for row in rows:
        assert all(cell.strip() and cell.strip() != "not yet" for cell in row), row


def test_the_functions_of_c_are_in_the_tables():
    header = (ROOT / "lib/include/persia/metrics/c.h").read_text() + (ROOT / "lib/include/persia/metrics/version.h").read_text()
    functions = set(re.findall(r"\bpersia_metrics_(\w+)\(", header))
    named = set(re.findall(r"`(\w+)\b", TEXT))
    assert functions <= named, functions - named
