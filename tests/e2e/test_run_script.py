"""`./run` works from any folder. Its demo compares the counts and leaves no process or file, however it ends."""

import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from pathlib import Path

import pytest
from servers import ROOT, Process, fetch, wait_until

import catalog

RUN = ROOT / "run"


class Demo(Process):
    """`./run demo`. A variable in the environment marks its processes, in any session."""

    def __init__(self, directory, seconds):
        self._mark = f"PERSIA_E2E_MARK={uuid.uuid4()}"
        name, value = self._mark.split("=")
        super().__init__([RUN, "demo", "--seconds", str(seconds)], directory / "demo.log", env={**os.environ, name: value}, cwd=directory)

    def left(self):
        """The command lines of live processes with the mark."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if self._mark.encode() in (process / "environ").read_bytes().split(b"\0"):
                    found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue  # the process has ended
        return found

    def directories(self):
        """Its directories. `./run` executes the demo, so the pid in their names is its own."""
        return [path for base in (tempfile.gettempdir(), "/dev/shm") for path in Path(base).glob(f"persia-demo-{self.pid}-*")]

    def wait_for_training(self):
        wait_until(lambda: "batches/s" in self.output(), "the job's first line of progress", 60)


@pytest.fixture
def demo(tmp_path, started):
    def start(seconds):
        process = Demo(tmp_path, seconds)
        started(process)
        return process

    return start


def test_help_names_every_command(tmp_path):
    result = subprocess.run([RUN, "help"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0
    for command in ("demo", "test", "build", "deps", "help"):
        assert f"\n  {command}" in result.stdout


@pytest.mark.parametrize("arguments", [["tset"], ["test", "--al"], ["deps", "everything"], ["demo", "--seconds", "none"]])
def test_misspelt_word_is_refused_and_named(arguments, tmp_path):
    result = subprocess.run([RUN, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert result.returncode != 0
    assert arguments[-1] in result.stderr


def test_a_failed_build_ends_the_tests(tmp_path):
    (tmp_path / "agent/net").mkdir(parents=True)
    for name in ("run", "CMakePresets.json", "agent/net/build_civetweb"):
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("packaging/setup", "tests/gate", "tests/mutate"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("civetweb", "tools"):
        if (ROOT / "build" / name).exists():  # as it was built before
            (tmp_path / "build").mkdir(exist_ok=True)
            (tmp_path / "build" / name).symlink_to(ROOT / "build" / name)
    (tmp_path / "CMakeLists.txt").write_text('message(FATAL_ERROR "broken on purpose")\n')
    result = subprocess.run([tmp_path / "run", "test"], capture_output=True, text=True, timeout=120)
    assert result.returncode == 1
    assert "broken on purpose" in result.stdout
    assert "unit tests" not in result.stdout
    assert result.stdout.splitlines()[-1] == "0 passed, 1 failed"


def test_demo_compares_every_metric_and_leaves_nothing(demo):
    process = demo(3)
    assert process.wait(120) == 0, process.output()
    for entry in catalog.entries():
        assert f"\n{entry.name} " in process.output()
    assert "to the last one" in process.output()
    assert process.left() == []
    assert process.directories() == []


def test_demo_says_where_to_look_and_ctrl_c_ends_it_in_order(demo):
    process = demo(60)
    process.wait_for_training()
    addresses = [word for word in process.output().split() if word.startswith("http://")]
    assert len(addresses) == 4
    for address in addresses:
        assert fetch(address)[0] == 200, address
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(120) == 0, process.output()
    assert "to the last one" in process.output()
    assert process.left() == []
    assert process.directories() == []


def test_killed_demo_leaves_nothing(demo):
    process = demo(60)
    process.wait_for_training()
    process.kill()
    wait_until(lambda: not process.left(), "the end of all that the demo started")
    assert process.directories(), "nobody was left to remove them"
    for directory in process.directories():
        shutil.rmtree(directory)
