"""What another user of the machine cannot do to a job unless its user has named a group, in each mode."""

import contextlib
import os
import select
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import AGENT, Job, environment
from modes import MODES
from servers import wait_until
from supervised import children, state, threads_of_process, wait_for_agent

# The default directory is a user's: another run of these tests on the machine has another one.
USER = 20_000 + 3 * (os.getpid() % 10_000)
OTHER, GROUP = USER + 1, USER + 2
# A member of the group.
AS_USER = f'exec setpriv --reuid={USER} --regid={USER} --groups={GROUP} "$@"'
pytestmark = pytest.mark.needs("other-users")
each_mode = pytest.mark.parametrize("mode", MODES)


@pytest.fixture
def job(public_folder, default, started):
    """In the default directory, which is removed once its processes have ended."""
    job = Job(public_folder, None, None, started)
    shutil.copy(job.worker_program, public_folder)
    job.agent_program, job.worker_program = (public_folder / program.name for program in (job.agent_program, job.worker_program))
    return job


@pytest.fixture
def default():
    """The parent of the user's default directories, which is not there yet."""
    path = Path(f"/dev/shm/persia-metrics-{USER}")
    yield path
    with contextlib.suppress(FileNotFoundError):
        path.unlink() if path.is_symlink() else shutil.rmtree(path)


def made(path, owner, group=None, mode=0o755):
    path.mkdir()
    os.chown(path, owner, group or owner)
    path.chmod(mode)
    return path


def refused(job, mode, why, directory):
    """The mode is told why it does not use the directory; the worker goes on, and nothing is put there."""
    seen = MODES[mode](job, AS_USER, AS_USER)
    wait_until(lambda: why in seen.log(), f"{why!r} in the log")
    seen.worker.tell("count my_app batches 7")
    seen.end()
    assert not list(directory.iterdir())


def test_an_agent_with_another_group_ends_with_its_supervisor(default, public_folder):
    """The kernel forgets that the supervisor asked for it, as for a file with capabilities (setcap)."""
    program = public_folder / "persia-metrics-agentd"
    os.chown(program, 0, GROUP)
    program.chmod(0o2755)
    words = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", public_folder / AGENT.name, "exec", "--gateway=off", "--listen=off"]
    exec_ = subprocess.Popen([*words, "--", "sleep", "600"], env=environment())
    started = {}
    try:
        agent = wait_for_agent(exec_)
        wait_until(lambda: len(threads_of_process(agent)) > 1, "its threads")
        started = children(exec_.pid)
        exec_.kill()
        exec_.wait()
        wait_until(lambda: state(agent) == "Z", "its end")
    finally:
        exec_.kill()
        for pid in started:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        exec_.wait()


@each_mode
def test_who_makes_the_default_directory_first_gets_nothing(job, mode, default):
    made(default, OTHER)
    refused(job, mode, "is not this user's alone", made(default / job.name, OTHER, GROUP, 0o2770))


@each_mode
def test_who_makes_it_by_a_link_gets_nothing(job, mode, default, public_folder):
    shared = made(made(public_folder / "elsewhere", OTHER) / job.name, OTHER, GROUP, 0o2770)
    default.symlink_to(shared.parent)
    os.lchown(default, OTHER, OTHER)
    refused(job, mode, "is a symbolic link of another user", shared)


@each_mode
def test_a_directory_of_another_user_is_shared_only_if_its_group_is_named(job, mode, segments):
    segments.chmod(0o755)
    job.segments = made(segments / "shared", OTHER, GROUP, 0o2770)
    setting = "PERSIA_METRICS_DIR_GROUP" if mode == "library" else "metrics_dir_group"
    refused(job, mode, f"is another user's; if its group is to share it, set {setting} to {GROUP}", job.segments)
    group = {"PERSIA_METRICS_DIR_GROUP": str(GROUP)}
    seen = MODES[mode](job, AS_USER, AS_USER, flags=[f"--metrics-dir-group={GROUP}"], env=group)
    seen.worker.tell("count my_app batches 7")
    assert seen.read()[0].one("my_app_batches") == 7
    assert {segment.stat().st_mode & 0o777 for segment in job.segments.glob("*.seg")} == {0o640}, "who shares the directory reads the values"
    assert seen.end() == 0


@each_mode
@pytest.mark.parametrize("umask", ["0177", "0277", "0777"])
def test_a_umask_takes_nothing_from_a_user(job, mode, umask):
    """Root's rights do not depend on modes."""
    script = f"umask {umask}; {AS_USER}"
    for _ in range(2):
        seen = MODES[mode](job, script, script)
        seen.worker.tell("count my_app batches 7")
        assert seen.read()[0].one("my_app_batches") in (7, 14), seen.log() + seen.worker.output()
        assert seen.end() == 0


@pytest.fixture
def pipe(public_folder):
    """Another user's named pipe, which he reads: the path, and a function for what has come."""
    path = public_folder / "fifo"
    os.mkfifo(path)
    os.chown(path, OTHER, GROUP)
    path.chmod(0o666)
    end = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    yield path, lambda: os.read(end, 4096) if select.select([end], [], [], 0)[0] else b""
    os.close(end)


def emit(job, mode, pipe, flags=(), env=None):
    variables = {"BENCHMARK_AI": "fifo", "BENCHMARK_AI_FIFO_FILEPATH": str(pipe), **(env or {})}
    seen = MODES[mode](job, AS_USER, AS_USER, flags=[f"--fifo={pipe}", *flags], env=variables)
    seen.worker.tell("count my_app batches 7")
    seen.worker.tell("emit loss 0.5")
    return seen


@each_mode
def test_another_users_pipe_gets_nothing_unless_its_group_is_named(job, mode, pipe, default):
    path, read = pipe
    seen = emit(job, mode, path)
    assert f"belongs to another user ({OTHER}, group {GROUP})" in seen.worker.output()
    assert read() == b""
    seen.read()
    seen.end()
    shutil.rmtree(default)
    made(made(default, USER) / job.name, USER, GROUP, 0o2770)
    seen = emit(job, mode, path, [f"--metrics-dir-group={GROUP}"], {"PERSIA_METRICS_DIR_GROUP": str(GROUP)})
    if mode in ("run", "exec"):
        wait_until(lambda: seen.read()[0].one("benchmarkai_loss") == 0.5, "the emitted value")
    else:
        assert read() == b'{"loss": 0.5}\n'
    assert seen.end() == 0


def test_exec_beside_another_agent_hands_no_pipe_of_another_user_to_its_command(job, pipe):
    path, read = pipe
    first = MODES["exec"](job, AS_USER)
    first.read()
    second = MODES["exec"](job, AS_USER, flags=[f"--fifo={path}"])
    second.worker.tell("emit loss 0.5")
    assert '{"loss": 0.5}' in second.worker.output(), "it prints, as without a pipe"
    assert read() == b""
    assert second.end() == first.end() == 0
