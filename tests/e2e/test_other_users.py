"""What another user of the machine cannot do to a job unless its user has named a group."""

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import AGENT, WORKER, environment

USER, OTHER, GROUP = 47110, 47111, 47112
pytestmark = pytest.mark.needs("other-users")


def as_user(*words, **env):
    """Runs a program as a member of the group. Returns its output; it ends with 0 in any case."""
    done = subprocess.run(
        ["setpriv", f"--reuid={USER}", f"--regid={USER}", f"--groups={GROUP}", *words],
        env=environment(**env), input="count my_app batches 7\n", capture_output=True, text=True, timeout=60, check=True,
    )
    return done.stdout + done.stderr


@pytest.fixture
def worker(public_folder):
    """Runs a worker that counts and ends, as the user."""
    shutil.copy(WORKER, public_folder)
    return lambda **env: as_user(public_folder / WORKER.name, PERSIA_JOB_NAME="job", **env)


@pytest.fixture
def once(public_folder):
    """What the user's agent reads, or why not."""

    def run(*flags):
        words = ["setpriv", f"--reuid={USER}", f"--regid={USER}", f"--groups={GROUP}", public_folder / AGENT.name, "once", "--job=job", *flags]
        done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=60, check=False)
        return done.stdout + done.stderr

    return run


def made(path, owner, group=None, mode=0o755):
    path.mkdir()
    os.chown(path, owner, group or owner)
    path.chmod(mode)
    return path


@pytest.fixture
def default():
    """The parent of the user's default directories, which is not there yet."""
    path = Path(f"/dev/shm/persia-metrics-{USER}")
    yield path
    with contextlib.suppress(FileNotFoundError):
        path.unlink() if path.is_symlink() else shutil.rmtree(path)


def test_who_makes_the_default_directory_first_gets_nothing(default, worker, once):
    made(default, OTHER)
    shared = made(default / "job", OTHER, GROUP, 0o2770)
    assert "is not this user's alone" in worker()
    assert "is not this user's alone" in once()
    assert not list(shared.iterdir())


def test_who_makes_it_by_a_link_gets_nothing(default, worker, once, public_folder):
    shared = made(made(public_folder / "elsewhere", OTHER) / "job", OTHER, GROUP, 0o2770)
    default.symlink_to(shared.parent)
    os.lchown(default, OTHER, OTHER)
    assert "is a symbolic link of another user" in worker()
    assert "is a symbolic link of another user" in once()
    assert not list(shared.iterdir())


def test_a_directory_of_another_user_is_shared_only_if_its_group_is_named(worker, once, segments):
    segments.chmod(0o755)
    shared = made(segments / "shared", OTHER, GROUP, 0o2770)
    assert f"is another user's; if its group is to share it, set PERSIA_METRICS_DIR_GROUP to {GROUP}" in worker(PERSIA_METRICS_DIR=str(shared))
    assert f"set metrics_dir_group to {GROUP}" in once(f"--metrics-dir={shared}")
    assert not list(shared.iterdir())
    worker(PERSIA_METRICS_DIR=str(shared), PERSIA_METRICS_DIR_GROUP=str(GROUP))
    (segment,) = shared.glob("*.seg")
    assert segment.stat().st_mode & 0o777 == 0o640, "who shares the directory reads the values, and writes none"
    assert 'my_app_batches{' in once(f"--metrics-dir={shared}", f"--metrics-dir-group={GROUP}")
