"""A program of its own that finds the installed library, statically and shared, and reaches the gateway by an agent."""

import os
import shutil
import subprocess
import uuid
from pathlib import Path

import pytest
from conftest import AGENT, BUILD, environment
from servers import ROOT, Process, wait_until

QUICKSTART = ROOT / "examples/quickstart"
BATCHES = 300  # as main.cc has it


def run(*command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, f"{command}:\n{result.stdout}\n{result.stderr}"


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory):
    """The built program by target name, against a tree that is installed in a directory of its own."""
    base = tmp_path_factory.mktemp("consumer")
    prefix = base / "prefix"
    run("cmake", "--install", BUILD, "--prefix", prefix)
    programs = {}
    for target in ("persia::metrics", "persia::metrics_shared"):
        source = base / target.replace("::", "_")
        shutil.copytree(QUICKSTART, source)
        lists = source / "CMakeLists.txt"
        assert "PRIVATE persia::metrics)" in lists.read_text()
        lists.write_text(lists.read_text().replace("PRIVATE persia::metrics)", f"PRIVATE {target})"))
        options = ["-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release"]
        run("cmake", "-S", source, "-B", source / "build", *options)
        run("cmake", "--build", source / "build")
        programs[target] = source / "build/quickstart"
    return programs


def start(job, started, program):
    worker = Process([program], job.directory / "quickstart.log", env=environment(PERSIA_METRICS_DIR=str(job.segments)))
    started(worker)
    return worker


@pytest.mark.parametrize("target", ["persia::metrics", "persia::metrics_shared"])
def test_worker_first_then_agent(quickstart, job, gateway, started, target):
    job.name = "quickstart"
    worker = start(job, started, quickstart[target])
    wait_until(lambda: list(job.segments.glob("*.seg")), "the worker's segment")
    job.agent()
    assert worker.wait() == 0
    gateway.wait_for("my_app_batches_total", BATCHES, job="quickstart", role="trainer")
    gateway.wait_for("my_app_step_time_cost_count", BATCHES)


@pytest.mark.parametrize("target", ["persia::metrics", "persia::metrics_shared"])
def test_agent_first_then_worker(quickstart, job, gateway, started, target):
    job.name = "quickstart"
    agent = job.agent()
    wait_until(lambda: agent.metrics(), "the agent to answer")
    worker = start(job, started, quickstart[target])
    assert worker.wait() == 0
    gateway.wait_for("my_app_batches_total", BATCHES, job="quickstart", role="trainer")
    gateway.wait_for("my_app_step_time_cost_count", BATCHES)


def test_worker_and_agent_find_each_other_by_the_jobs_name(quickstart, gateway, started, tmp_path):
    """As the README has it: no directory is given, and the job's name decides where both look."""
    job_name = f"quickstart-{uuid.uuid4().hex}"
    env = environment(PERSIA_JOB_NAME=job_name, PERSIA_METRICS_GATEWAY_ADDR=gateway.address, PERSIA_METRICS_PUSH_INTERVAL="0.2")
    try:
        agent = Process([AGENT, "run", "--listen=off"], tmp_path / "agent.log", env=env)
        started(agent)
        worker = Process([quickstart["persia::metrics"]], tmp_path / "quickstart.log", env=env)
        started(worker)
        assert worker.wait() == 0
        gateway.wait_for("my_app_batches_total", BATCHES, job=job_name, role="trainer")
    finally:
        shutil.rmtree(Path(f"/dev/shm/persia-metrics-{os.getuid()}") / job_name, ignore_errors=True)


def test_shared_program_uses_the_shared_library(quickstart):
    def needed(target):
        return subprocess.run(["objdump", "-p", quickstart[target]], capture_output=True, text=True, check=True).stdout

    assert "libpersia_metrics.so.0" in needed("persia::metrics_shared")
    assert "libpersia_metrics" not in needed("persia::metrics")
