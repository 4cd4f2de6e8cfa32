"""Executes each step of agent/Dockerfile in a plain Debian, then runs the image's programs. Without Docker, as root.

The base images are debootstraps of the same Debian. What they lack of Docker's: its layers, its exclusion of manuals and
translations from the slim image, and the point release, since a mirror has the newest only.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import dockerfile
from debian import Debian

ROOT = Path(__file__).resolve().parent.parent.parent
DOCKERFILE = ROOT / "agent/Dockerfile"


def copy(step, context, stages, root, directory):
    """COPY, from the repository or another stage, into the root at `directory`."""
    options, words = step.options()
    unknown = set(options) - {"from"}
    if unknown:
        raise ValueError(f"{DOCKERFILE.name}:{step.line}: unknown option {unknown} of COPY")
    *sources, target = words
    into = root.path / (Path("/") / directory / target).relative_to("/")
    to_directory = target.endswith(("/", "."))
    for word in sources:
        if "from" in options:
            source, leave_out = stages[options["from"]].path / word.lstrip("/"), set()
        else:
            source, leave_out = context / word, dockerfile.ignored((context / ".dockerignore").read_text())
        if source.is_dir():

            def ignore(at, names, top=source, left_out=leave_out):
                return left_out & set(names) if Path(at) == top else set()

            shutil.copytree(source, into, symlinks=True, dirs_exist_ok=True, ignore=ignore)
        else:
            place = into / source.name if to_directory else into
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, place)


def build(stages, directory):
    """Builds all stages; returns the last one's root and settings."""
    base = Debian.bootstrap(directory / "base", stages[0].base)
    roots, took = {}, {}
    for stage in stages:
        if Debian.suite(stage.base) != base.suite_name:
            raise ValueError(f"{stage.base} is another Debian than {stages[0].base}")
        started = time.monotonic()
        root = roots[stage.name] = base.copy(directory / stage.name)
        settings = {"directory": "/", "user": "0:0", "environment": {}}
        for step in stage.steps:
            print(f"==> {stage.name}: {step.instruction} {step.text[:100]}", flush=True)
            if step.instruction == "WORKDIR":
                settings["directory"] = step.text
                (root.path / step.text.lstrip("/")).mkdir(parents=True, exist_ok=True)
            elif step.instruction == "COPY":
                copy(step, ROOT, roots, root, settings["directory"])
            elif step.instruction == "RUN":
                root.run(step.command(), **settings)
            elif step.instruction == "USER":
                settings["user"] = step.text
            elif step.instruction == "ENV":
                settings["environment"] |= dict(word.split("=", 1) for word in step.options()[1])
        took[stage.name] = time.monotonic() - started
    return root, settings, took


def check(root, stage, settings):
    """Runs the programs as a container of the image would, in a read-only root."""
    checks = 0

    def says(words, expected, code=0):
        nonlocal checks
        output = root.run(words, code=code, **settings)
        if expected not in output:
            raise AssertionError(f"{words}: no {expected!r} in\n{output}")
        checks += 1

    root.remount_read_only(writable=["/tmp", "/dev/shm"])
    says(["id", "-u"], settings["user"].split(":")[0])
    says(["sh", "-c", "touch /usr/local/bin/x || echo refused"], "refused")
    says(stage.last("CMD").command(), "Usage: persia-metrics-agent")
    says(["persia-metrics-agent", "--version"], "persia-metrics-agent ")
    shutil.copy2(ROOT / "config/global_config.yaml", root.path / "tmp/global_config.yaml")
    (root.path / "tmp/global_config.yaml").chmod(0o644)
    says(["persia-metrics-agent", "check-config", "--config=/tmp/global_config.yaml"], "dlrm_v1.0")
    says(["persia-metrics-agent", "explain", "torchelastic/workers.trainer.flakiness"], "torchelastic_worker_group_flakiness_ratio")
    says(["embedding_job", "--help"], "embedding_job")
    for program in ("persia-metrics-agentd", "embedding_job"):
        output = root.run(["ldd", f"/usr/local/bin/{program}"], **settings)
        if "not found" in output:
            raise AssertionError(f"{program} lacks libraries:\n{output}")
        checks += 1
    health = stage.last("HEALTHCHECK").command()
    root.run(health, code=1, **settings)  # nobody is there
    checks += 1
    # A whole job under the agent, whose health check succeeds meanwhile.
    job = ["persia-metrics-agent", "exec", "--job=image", "--gateway=127.0.0.1:9", "--connect-timeout=0.2", "--push-timeout=0.5", "--"]
    ask = "for _ in $(seq 50); do sleep 0.2; " + " ".join(health) + " && echo healthy && break; done"
    says([*job, "sh", "-c", f"embedding_job --duration 3 & {ask}; wait $!"], "healthy")
    return checks


def inside(directory):
    stages = dockerfile.parse(DOCKERFILE.read_text())
    started = time.monotonic()
    root, settings, took = build(stages, directory)
    checks = check(root, stages[-1], settings)
    size = int(subprocess.run(["du", "-sxm", root.path], capture_output=True, text=True, check=True).stdout.split()[0])
    base = int(subprocess.run(["du", "-sxm", directory / "base"], capture_output=True, text=True, check=True).stdout.split()[0])
    times = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in took.items())
    print(f"image-check: {sum(len(stage.steps) for stage in stages)} steps taken, {checks} checks passed; stages: {times}; all of it "
          f"{time.monotonic() - started:.0f} s; the image has {size} MB, {size - base} MB more than its base")


def main():
    parser = argparse.ArgumentParser(prog="./run image-check", description=__doc__)
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        inside(arguments.inside)
        return 0
    if os.geteuid() != 0:
        sys.exit("image-check: a Debian is made by root only: sudo ./run image-check")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    directory = Path(tempfile.mkdtemp(prefix="persia-image-"))
    try:
        # Mounts and processes always end with the namespaces, before the directory is removed.
        words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, __file__, "--inside", directory]
        with subprocess.Popen(words, stdin=subprocess.DEVNULL) as process:
            try:
                return process.wait()
            finally:
                process.kill()
    finally:
        shutil.rmtree(directory)


sys.exit(main())
