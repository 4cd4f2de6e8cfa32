"""Runs prometheus_client's own tests with its values in the segment: `tests/client_python [VERSION...]`, by default the oldest that we support and the newest.

Each version's source comes from the package index into build/client_python, with a virtual environment that has what its tests import. Its tests
of the multiprocess mode are left out. Exits with 1 if a test fails, if fewer tests pass than without the hook, or if the hook was not there.
"""

import argparse
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(os.environ.get("PERSIA_BUILD_DIR", ROOT / "build/release")) / "lib/python"
OURS = ROOT / "build/client_python"
PYTHON = "/usr/bin/python3"  # the interpreter that the package is built for
LEFT_OUT = (
    "--ignore=tests/test_multiprocess.py",
    # Of 0.26, also without the hook: which error the client gets depends on who is faster.
    "--deselect=tests/test_exposition.py::TestWsgiTLS::test_mtls_untrusted_client_cert_raises",
)
IMPORTED = ("pytest", "pytest-benchmark", "asgiref", "aiohttp", "django", "twisted")

# Says at the end whether values are ours.
PLUGIN = """
import prometheus_client
def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line("values are of " + prometheus_client.Counter("of", "O.", registry=None)._value.__class__.__module__)
"""


def run(*words, **options):
    return subprocess.run([str(word) for word in words], check=True, **options)


def source_of(version):
    """The folder with the source of a version; of the newest for ""."""
    folder = OURS / (version or "newest")
    if not list(folder.glob("prometheus_client-*.tar.gz")):
        run(PYTHON, "-m", "venv", "--clear", folder / "venv")
        pip = (folder / "venv/bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check")
        run(*pip, "install", *IMPORTED)
        wanted = f"prometheus_client=={version}" if version else "prometheus_client"
        run(*pip, "download", "--no-deps", "--no-binary=:all:", "--dest", folder, wanted)
    (archive,) = folder.glob("prometheus_client-*.tar.gz")
    source = folder / archive.name.removesuffix(".tar.gz")
    if not source.exists():
        with tarfile.open(archive) as files:
            files.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else files.extractall(folder)
    return source


def passed(source, hook):
    """Runs the tests. Returns how many passed."""
    folder = OURS / "plugin"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(f"import site\nsite.addsitedir({str(PACKAGE)!r})\n")
    (folder / "whose_values.py").write_text(PLUGIN)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PERSIA_", "PROMETHEUS_", "PYTHON"))}
    env |= {"PYTHONPATH": f"{folder}:{PACKAGE}:{source}", "PERSIA_METRICS_ENABLED": "1", "PERSIA_METRICS_PROMETHEUS_CLIENT": hook}
    words = (source.parent / "venv/bin/pytest", "-q", "-p", "no:cacheprovider", "-p", "whose_values", *LEFT_OUT, "tests")
    done = subprocess.run([str(word) for word in words], cwd=source, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    told = done.stdout
    whose = "persia_metrics.prometheus_values" if hook == "1" else "prometheus_client.values"
    if done.returncode != 0 or f"values are of {whose}" not in told:
        sys.exit(f"{told}\n{source.name}, hook {hook}: failed, or the values were not those of {whose}")
    return int(re.search(r"^(\d+) passed", told, re.M).group(1))


def main():
    parser = argparse.ArgumentParser(prog="tests/client_python", description="runs prometheus_client's own tests with the hook")
    parser.add_argument("versions", nargs="*", default=["0.16.0", ""], metavar="VERSION")
    for version in parser.parse_args().versions:
        source = source_of(version)
        without, with_hook = passed(source, "0"), passed(source, "1")
        print(f"{source.name}: {with_hook} passed with the hook, {without} without")
        if with_hook < without:
            sys.exit(f"{source.name}: {without - with_hook} tests do not run with the hook")


main()
