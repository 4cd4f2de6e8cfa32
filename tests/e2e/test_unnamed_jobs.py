"""No two jobs share counts: jobs without a name, and jobs that are told the same directory."""

import itertools
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from conftest import AGENT, WORKER, WorkerUnderAgent, environment
from servers import free_port, wait_until

_users = itertools.count(200_000 + os.getpid() % 10_000 * 100)


@pytest.fixture
def unnamed(public_folder, tmp_path, gateway, started):
    """Starts jobs without a name. All have the same user, and no other test uses that user."""
    user = next(_users)
    home = Path(f"/dev/shm/persia-metrics-{user}")
    shutil.copy(WORKER, public_folder)
    count = itertools.count()

    def run():
        """An agent without a job of its own, in the same directory: its exit code and its output."""
        flags = ["--gateway=off", "--listen=127.0.0.1:0"]
        command = ["setpriv", f"--reuid={user}", "--clear-groups", public_folder / AGENT.name, "run", *flags]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=30, check=False)
        return done.returncode, done.stderr

    def start(*arguments):
        address = f"127.0.0.1:{free_port()}"
        flags = ["--gateway", gateway.address, "--listen", address, "--push-interval=0.2", "--ip-addr=10.0.0.1"]
        job = WorkerUnderAgent(
            [f"--reuid={user}", "--clear-groups", public_folder / AGENT.name, "exec", *flags, "--", public_folder / WORKER.name, *arguments],
            tmp_path / f"exec-{next(count)}.log",
            environment(PERSIA_ROLE="trainer"),
            address,
            "setpriv",
            stdin=subprocess.PIPE,
        )
        started(job)
        return job

    start.home = home
    start.run = run
    yield start
    shutil.rmtree(home, ignore_errors=True)


def agents_of(job):
    """The pids of the agents that this supervisor has started and that run."""
    found = subprocess.run(["pgrep", "-P", str(job.pid), "-f", "exec-collect"], capture_output=True, text=True, timeout=30, check=False)
    return [int(pid) for pid in found.stdout.split()]


def jobs_on(gateway):
    return {dict(labels)["job"]: value for (name, labels), value in gateway.metrics().items() if name == "my_app_batches"}


@pytest.mark.needs("other-users")
def test_unnamed_jobs_at_the_same_time_take_names_of_their_own(unnamed, gateway):
    jobs = [unnamed(), unnamed(), unnamed()]
    for job, by in zip(jobs, (1, 20, 300)):
        job.tell(f"count my_app batches {by}")
    wait_until(lambda: sorted(jobs_on(gateway).values()) == [1, 20, 300], "each job's count")
    assert set(jobs_on(gateway)) == {"default", "default-2", "default-3"}
    assert sum("job_name is not set" in job.output() for job in jobs) == 2
    assert [job.leave() for job in jobs] == [0, 0, 0]
    later = unnamed()
    later.tell("count my_app batches 4000")
    wait_until(lambda: jobs_on(gateway)["default"] == 4000, "the name that is free again")
    assert later.leave() == 0


@pytest.mark.needs("other-users")
def test_an_unnamed_job_whose_agent_is_dead_keeps_its_name(unnamed, gateway):
    first = unnamed()
    first.tell("count my_app batches 1")
    wait_until(lambda: jobs_on(gateway) == {"default": 1}, "the first job's count")
    for pid in wait_until(lambda: agents_of(first), "the agent"):
        os.kill(pid, signal.SIGSTOP)
        os.kill(pid, signal.SIGKILL)
    second = unnamed()
    second.tell("count my_app batches 20")
    first.tell("count my_app batches 1")
    wait_until(lambda: jobs_on(gateway) == {"default": 2, "default-2": 20}, "the counts of both")
    assert (first.leave(), second.leave()) == (0, 0)


@pytest.mark.needs("other-users")
def test_an_unnamed_run_beside_an_unnamed_job_ends(unnamed, gateway):
    """It cannot take another name: no worker would be there."""
    job = unnamed()
    job.tell("count my_app batches 1")
    wait_until(lambda: jobs_on(gateway) == {"default": 1}, "the job's count")
    code, output = unnamed.run()
    assert code == 1
    assert "give it a job_name" in output
    job.tell("count my_app batches 20")
    wait_until(lambda: jobs_on(gateway) == {"default": 21}, "the job to go on")
    assert job.leave() == 0


@pytest.mark.needs("other-users")
def test_an_unnamed_run_is_continued_by_the_same_command_alone(unnamed, gateway):
    for by, total in ((1, 1), (20, 21)):
        job = unnamed("first")
        job.tell(f"count my_app batches {by}")
        wait_until(lambda: jobs_on(gateway) == {"default": total}, f"{total} from the first command")
        job.popen.stdin.write("exit 3\n")
        job.popen.stdin.flush()
        assert job.wait() == 3
    other = unnamed("second")
    other.tell("count my_app batches 300")
    wait_until(lambda: jobs_on(gateway) == {"default": 300}, "the second command's own count")
    assert other.leave() == 0


def test_a_directory_of_another_running_job_is_refused(job, gateway, tmp_path):
    first = job.exec_worker()
    first.tell("count my_app batches 1")
    gateway.wait_for("my_app_batches", 1)
    refusal = f"uses {job.segments}; this job is not collected: give it a job_name, or another metrics_dir"
    ran = job.exec("sh", "-c", "echo $PERSIA_METRICS_ENABLED; exit 7", flags=("--job=another",))
    assert ran.wait() == 7
    assert ran.output().endswith("0\n") and 'of job "job_under_test" ' + refusal in ran.output()
    assert "the command runs without metrics" in ran.output()
    beside = job.agent("--job=another")
    assert beside.wait() == 1
    assert refusal in beside.output()
    assert first.leave() == 0
    after = job.exec_worker("--job=another")
    after.tell("count my_app batches 20")
    gateway.wait_for("my_app_batches", 20, job="another")
    gateway.wait_for("my_app_batches", 1, job=job.name)
    assert after.leave() == 0
