"""Programs that use the installed library, static and shared, and reach the gateway through an agent."""

import os
import shutil
import subprocess
import uuid
from pathlib import Path

import pytest
from conftest import AGENT, BUILD, environment
from servers import ROOT, Process, wait_until

QUICKSTART = ROOT / "examples/quickstart"
BATCHES = 100  # two minutes without an argument are too long for a test


def run(*command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, f"{command}:\n{result.stdout}\n{result.stderr}"


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """A directory with the installed project."""
    prefix = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", BUILD, "--prefix", prefix)
    return prefix


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory, prefix):
    """The programs by target name, built against the installed tree."""
    base = tmp_path_factory.mktemp("consumer")
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


# A job with prometheus-cpp, and the two lines that connect it to the agent. It prints the page of an Exposer.
LEGACY_JOB = """
#include <persia/metrics/instruments.h>
#include <persia/metrics/prometheus_cpp.h>
#include <prometheus/counter.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <cstdio>
#include <memory>

int main() {
  const auto registry = std::make_shared<prometheus::Registry>();
  auto& steps = prometheus::BuildCounter().Name("legacy_steps_total").Help("Steps.").Register(*registry).Add({{"phase", "warm"}});
  persia::metrics::RegistryCopy copy(registry);
  steps.Increment(41);
  copy.CopyNow();
  persia::metrics::Counter("my_app", "own_total").Increment(7);
  std::puts(prometheus::TextSerializer().Serialize(persia::metrics::AsCollectable()->Collect()).c_str());
  steps.Increment();
}
"""
LEGACY_LISTS = """
cmake_minimum_required(VERSION 3.16)
project(legacy LANGUAGES C CXX)
find_package(persia_metrics REQUIRED COMPONENTS prometheus_cpp)
add_executable(legacy main.cc)
target_link_libraries(legacy PRIVATE {target})
"""


def start(job, started, program, *arguments):
    worker = Process([program, *arguments], job.directory / "quickstart.log", env=environment(PERSIA_METRICS_DIR=str(job.segments)))
    started(worker)
    return worker


@pytest.mark.parametrize(("target", "first"), [("persia::metrics", "worker"), ("persia::metrics_shared", "agent")])
def test_worker_and_agent_start_in_either_order(quickstart, job, gateway, started, target, first):
    job.name = "quickstart"
    if first == "agent":
        wait_until(job.agent().metrics, "the agent to answer")
    worker = start(job, started, quickstart[target], str(BATCHES))
    if first == "worker":
        wait_until(lambda: list(job.segments.glob("*.seg")), "the worker's segment")
        job.agent()
    assert worker.wait(90) == 0
    gateway.wait_for("my_app_batches_total", BATCHES, job="quickstart", role="trainer")
    gateway.wait_for("my_app_step_time_cost_count", BATCHES)
    gateway.wait_for("my_app_loss", 2 / (1 + (BATCHES - 1) / 100))
    gateway.wait_for("persia_progress_steps_total", BATCHES)


def test_worker_and_agent_find_each_other_by_the_jobs_name(quickstart, gateway, started, tmp_path):
    """As in docs/own-metrics.md: no directory is given, and the job's name decides the directory of both."""
    job_name = f"quickstart-{uuid.uuid4().hex}"
    env = environment(PERSIA_JOB_NAME=job_name, PERSIA_METRICS_GATEWAY_ADDR=gateway.address, PERSIA_METRICS_PUSH_INTERVAL="0.2")
    try:
        agent = Process([AGENT, "run", "--listen=off"], tmp_path / "agent.log", env=env)
        started(agent)
        worker = Process([quickstart["persia::metrics"], str(BATCHES)], tmp_path / "quickstart.log", env=env)
        started(worker)
        assert worker.wait(90) == 0
        gateway.wait_for("my_app_batches_total", BATCHES, job=job_name, role="trainer")
    finally:
        shutil.rmtree(Path(f"/dev/shm/persia-metrics-{os.getuid()}") / job_name, ignore_errors=True)


def test_shared_program_uses_the_shared_library(quickstart):
    def needed(target):
        return subprocess.run(["objdump", "-p", quickstart[target]], capture_output=True, text=True, check=True).stdout

    assert "libpersia_metrics.so.0.1" in needed("persia::metrics_shared")
    assert "libpersia_metrics" not in needed("persia::metrics")


@pytest.mark.parametrize("target", ["persia::metrics_prometheus_cpp", "persia::metrics_shared_prometheus_cpp"])
def test_job_with_prometheus_cpp_gains_the_agent_by_two_lines(prefix, job, gateway, started, tmp_path, target):
    (tmp_path / "main.cc").write_text(LEGACY_JOB)
    (tmp_path / "CMakeLists.txt").write_text(LEGACY_LISTS.format(target=target))
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "build")
    job.agent()
    worker = start(job, started, tmp_path / "build/legacy")
    assert worker.wait(90) == 0
    # The copy and the program's own counter are in one registry, with either library.
    assert 'legacy_steps_total{phase="warm"} 41\n' in worker.output() and "my_app_own_total 7\n" in worker.output()
    gateway.wait_for("legacy_steps_total", 42, phase="warm")
    gateway.wait_for("my_app_own_total", 7)


@pytest.mark.parametrize(("words", "stops"), [((), False), (("--preset", "release"), True)], ids=["plain", "preset"])
def test_warnings_stop_only_the_builds_of_our_presets(tmp_path, words, stops):
    """Another compiler may have other warnings."""
    run("cmake", *words, "-S", ROOT, "-B", tmp_path / "build", "-G", "Ninja")
    compiled = (tmp_path / "build/compile_commands.json").read_text()
    assert "-Wextra" in compiled
    assert ("-Werror" in compiled) == stops
