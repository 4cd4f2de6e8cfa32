"""The wheel, built without a network, and installed into a virtual environment."""

import functools
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from conftest import PYTHON, environment
from servers import ROOT, Process
from wheel import OFFLINE, build_environment, build_lock, run

@pytest.fixture
def wheel(built_wheel):
    return built_wheel.file


@pytest.fixture(scope="module")
def installed(built_wheel, tmp_path_factory):
    """The interpreter of a virtual environment that has only the wheel."""
    environment_ = tmp_path_factory.mktemp("installed") / "venv"
    run(PYTHON, "-m", "venv", "--without-pip", environment_)
    python = environment_ / "bin/python"
    run(built_wheel.python, "-m", "pip", "--python", python, "install", "--no-index", built_wheel.file)
    return python


def test_wheel_has_every_source_and_its_types(wheel):
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = ROOT / "lib/python"
    files = [path for path in (package / "persia_metrics").rglob("*") if path.suffix in {".py", ".pyi", ".typed"}]
    sources = {str(path.relative_to(package)) for path in files} | {"persia_metrics.pth", "persia_metrics_startup.py"}
    (native,) = packed - sources
    assert native == "persia_metrics/_native.abi3.so"
    assert packed - {native} == sources


@functools.cache
def pythons():
    """The interpreters of this machine that are Python 3.10 or newer: the usual ones, and pyenv's."""
    found = [PYTHON, *(shutil.which(f"python3.{minor}") for minor in range(10, 20))]
    found += [str(path) for path in Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/*/bin/python")]
    versions = {}
    for python in filter(None, found):
        command = [python, "-c", "import sys; print(*sys.version_info[:2])"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        version = tuple(map(int, done.stdout.split()))
        if done.returncode == 0 and version >= (3, 10):
            versions.setdefault(version, python)
    return versions


def test_one_wheel_serves_every_python(wheel, tmp_path):
    assert re.fullmatch(r"persia_metrics-[\d.]+-cp310-abi3-linux_\w+\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "package")
    script = tmp_path / "train.py"
    script.write_text(
        """
import persia_metrics
import persia_metrics.torchelastic.events as events
import persia_metrics.torchelastic.metrics as metrics
assert persia_metrics.exporting()
counter = persia_metrics.Counter("abi", "steps", "Steps.", ["rank"])
for amount in (1, 2.5, True):
    counter.labels("0").inc(amount)
for wrong in (lambda: counter.inc(), lambda: counter.labels("0").inc("1"), lambda: counter.labels("0").inc(1, 2)):
    try:
        wrong()
    except (TypeError, ValueError):
        continue
    raise AssertionError("it took a wrong argument")
with persia_metrics.Histogram("abi", "seconds").time():
    persia_metrics.Gauge("abi", "loss").set(0.5)
metrics.put_metric("latency", 5, "abi")
events.record("checkpoint", "abi", {"bytes": 1024, "path": "/\\udcff"})
"""
    )
    for version, python in pythons().items():
        env = environment(PYTHONPATH=str(tmp_path / "package"), PERSIA_METRICS_DIR=str(tmp_path / "segments"), PYTHONWARNINGS="error")
        done = subprocess.run([python, script], env=env, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, ""), (version, done.stderr)


def test_building_it_leaves_the_sources_alone(wheel):
    left = {path.name for path in (ROOT / "lib/python").iterdir()} - {"__pycache__"}
    assert left == {
        *("CMakeLists.txt", "README.md", "backend.py", "persia_metrics", "persia_metrics.pth", "persia_metrics_startup.py"),
        *("pyproject.toml", "setup.py", "src"),
    }


def test_pip_builds_it_with_the_declared_requirements(wheel, tmp_path):
    """In a new virtual environment. pip takes setuptools and wheel from Debian's folder of wheels."""
    run(PYTHON, "-m", "venv", tmp_path / "venv")
    offline = ("--no-deps", "--no-index", "--find-links=/usr/share/python-wheels")
    with build_lock():
        run(tmp_path / "venv/bin/python", "-m", "pip", "wheel", *offline, "-w", tmp_path, ROOT / "lib/python")
    (built,) = tmp_path.glob("*.whl")
    assert built.name == wheel.name


@pytest.mark.parametrize("package", ["setuptools", "wheel"])
def test_without_a_requirement_the_error_says_what_to_install(package, tmp_path):
    """A requirement that cannot be imported, as on a Python without it."""
    (tmp_path / f"{package}.py").write_text(f"raise ModuleNotFoundError(name={package!r})\n")
    venv = tmp_path / "venv"
    run(PYTHON, "-m", "venv", "--system-site-packages", venv)
    command = [venv / "bin/python", "-m", "pip", "wheel", *OFFLINE, "-w", tmp_path, ROOT / "lib/python"]
    env = build_environment(PYTHONPATH=str(tmp_path))
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode != 0
    assert f"{package} is missing" in done.stderr and "apt-get install python3-setuptools python3-wheel" in done.stderr, done.stderr


def test_reading_its_version_makes_nothing(tmp_path):
    for file in ("CMakeLists.txt", "lib/python/setup.py", "lib/python/README.md"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    before = set(tmp_path.rglob("*"))
    assert re.fullmatch(r"[\d.]+\n", run(PYTHON, "setup.py", "--version", cwd=tmp_path / "lib/python"))
    assert set(tmp_path.rglob("*")) == before


def test_installed_wheel_reaches_the_gateway(installed, job, gateway, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        """
import sys
import persia_metrics
import persia_metrics.torchelastic.metrics as metrics
from persia_metrics.benchmarkai import emit
assert persia_metrics.__file__.startswith(sys.prefix)
persia_metrics.Counter("my_app", "steps").inc(3)
metrics.put_metric("latency", 5, "my_app")
emit({"from.benchmark": 7})
"""
    )
    agent = job.exec(installed, script, env={"BENCHMARK_AI": "segment"})
    assert agent.wait() == 0, agent.output()
    gateway.wait_for("my_app_steps", 3)
    gateway.wait_for("my_app_latency", 5)
    gateway.wait_for("benchmarkai_from_benchmark", 7)


def test_module_needs_nothing_and_shows_nothing(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        (native,) = (name for name in archive.namelist() if name.endswith(".so"))
        archive.extract(native, tmp_path)
    module = tmp_path / native
    symbols = run("nm", "-D", "--defined-only", module).split("\n")
    assert [line.split()[-1] for line in symbols if line] == ["PyInit__native"]
    libraries = {line.split()[-1] for line in run("objdump", "-p", module).split("\n") if "NEEDED" in line}
    assert libraries <= {"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0"}
    assert os.path.getsize(module) < 2_000_000


def test_stubs_tell_of_what_is_there(installed, tmp_path):
    script = tmp_path / "stubs.py"
    script.write_text(
        """
import ast, inspect, pathlib
import persia_metrics._native as native
tree = ast.parse(pathlib.Path(native.__file__).parent.joinpath("_native.pyi").read_text())
def parameters(node):
    rest = [node.args.vararg] if node.args.vararg else []
    return [a.arg for a in node.args.posonlyargs + node.args.args + rest]
told = set()
for node in tree.body:
    if isinstance(node, ast.ClassDef):
        kind = getattr(native, node.name)
        methods = {m.name: m for m in node.body if isinstance(m, ast.FunctionDef) and m.name != "__new__"}
        assert {n for n in vars(kind) if not n.startswith("_")} <= set(methods) <= set(vars(kind)), node.name
        for name, method in methods.items():
            assert parameters(method) == list(inspect.signature(getattr(kind, name)).parameters), (node.name, name)
    elif isinstance(node, ast.FunctionDef):
        assert parameters(node) == list(inspect.signature(getattr(native, node.name)).parameters), node.name
    if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
        told.add(node.name)
    elif isinstance(node, ast.AnnAssign) and not node.target.id.startswith("_"):
        told.add(node.target.id)
assert told == {n for n in vars(native) if not n.startswith("_")}, told
"""
    )
    with Process([installed, script], tmp_path / "stubs.log") as process:
        assert process.wait() == 0, process.output()
