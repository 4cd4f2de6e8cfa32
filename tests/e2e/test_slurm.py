"""The batch files of docs/slurm.md run as they are written. Stand-ins of srun and torchrun start the processes as the real ones do: several
tasks of one host at once, with SLURM_PROCID, and ranks of one task, with RANK."""

import os
import re
import shutil
import subprocess
import uuid
from pathlib import Path

import pytest
from conftest import AGENT, PYTHON, PYTHON_PACKAGE, environment
from servers import ROOT

BATCH_FILES = dict(
    zip(("a task a node", "a task a rank"), re.findall(r"```sh\n(#!/bin/bash\n.*?)```", (ROOT / "docs/slurm.md").read_text(), re.S), strict=True)
)
RANKS = 3
# Starts a command several times at once, each with its number in a variable; fails if one of them does.
LAUNCHER = """#!/bin/sh
while [ "${{1#--}}" != "$1" ]; do shift; done
pids=
for number in $(seq 0 {last}); do
  {variable}=$number {interpreter} "$@" &
  pids="$pids $!"
done
for pid in $pids; do
  wait "$pid" || exit
done
"""
TRAIN = """
from persia_metrics import Counter

Counter("my_app", "batches_total").inc(5)
"""


def program(folder, name, text):
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


@pytest.mark.static
@pytest.mark.parametrize("name", BATCH_FILES)
def test_batch_file_names_the_job_by_its_number(name):
    text = BATCH_FILES[name]
    assert subprocess.run(["bash", "-n"], input=text, text=True, timeout=60).returncode == 0
    assert 'PERSIA_JOB_NAME="$SLURM_JOB_NAME-$SLURM_JOB_ID"' in text and "srun persia-metrics-agent exec" in text


@pytest.mark.parametrize("name", BATCH_FILES)
def test_batch_file_gives_each_rank_its_own_values(name, gateway, tmp_path):
    has_torchrun = "torchrun" in BATCH_FILES[name]
    program(tmp_path, "srun", LAUNCHER.format(last=0 if has_torchrun else RANKS - 1, variable="SLURM_PROCID", interpreter="env"))
    program(tmp_path, "torchrun", LAUNCHER.format(last=RANKS - 1, variable="RANK", interpreter="python3"))
    program(tmp_path, "scontrol", "#!/bin/sh\necho localhost\n")
    (tmp_path / "persia-metrics-agent").symlink_to(AGENT)
    (tmp_path / "python3").symlink_to(PYTHON)
    (tmp_path / "train.py").write_text(TRAIN)
    number = uuid.uuid4().hex
    slurm = {"SLURM_JOB_NAME": "dlrm", "SLURM_JOB_ID": number, "SLURM_JOB_NODELIST": "localhost", "SLURM_NNODES": "1"}
    env = environment(**slurm, PATH=f"{tmp_path}:{os.environ['PATH']}", PYTHONPATH=str(PYTHON_PACKAGE))
    batch = BATCH_FILES[name].replace("metrics_gateway:9091", gateway.address)
    assert gateway.address in batch
    job = f"dlrm-{number}"
    try:
        done = subprocess.run(["bash", "-ec", batch], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        for rank in range(RANKS):
            gateway.wait_for("my_app_batches_total", 5, job=job, instance=f"rep_{rank}")
    finally:
        shutil.rmtree(Path(f"/dev/shm/persia-metrics-{os.getuid()}") / job, ignore_errors=True)
