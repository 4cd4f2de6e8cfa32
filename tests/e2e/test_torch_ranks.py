"""`exec --instrument=torch` and the ranks of Debian's torchrun."""

import re
import subprocess

import pytest
from conftest import PYTHON, PYTHON_PACKAGE
from torch_environment import torch_environment
from torch_program import MODEL, installed

DDP = (
    MODEL
    + """
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
sampler = torch.utils.data.DistributedSampler(data, shuffle=False)

class Data(TensorDataset):
    def __getitem__(self, index):
        if rank == 1 and index % 16 == 1:
            time.sleep(0.2)
        return super().__getitem__(index)

for epoch in range(4):
    for batch, wanted in DataLoader(Data(*data.tensors), batch_size=7, sampler=sampler):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(batch), wanted).backward()
        optimizer.step()
if rank == 0:
    torch.save(model.state_dict(), sys.argv[1])
"""
)


def test_exec_instruments_the_ranks_of_torchrun(job, gateway, tmp_path):
    """Rank 1 loads slowly. The other waits for its gradients in sync, not in backward. The results are the same to the bit."""
    (tmp_path / "train.py").write_text(DDP)
    words = [PYTHON, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--monitor_interval", "0.2", tmp_path / "train.py"]
    for flags in (["--instrument=torch"], []):
        meeting = tmp_path / f"meeting{len(flags)}"
        meeting.mkdir()
        env = {"PYTHONPATH": installed(tmp_path), **torch_environment(meeting)}
        agent = job.exec(*words, tmp_path / f"model{len(flags)}", flags=[*flags, f"--run-id={len(flags)}"], env=env)
        assert agent.wait(120) == 0, agent.output()
        if not flags:
            continue
        shown = gateway.metrics()

        def seconds(rank, phase):
            return shown.one("persia_phase_seconds_total", role="worker", instance=f"rep_{rank}", phase=phase) or 0

        for rank in range(2):
            assert shown.one("persia_progress_steps_total", instance=f"rep_{rank}") == 20
            assert shown.one("persia_progress_samples_total", instance=f"rep_{rank}") == 140
            for phase in ("backward", "forward", "optimizer"):
                assert shown.one("persia_phase_duration_seconds_count", instance=f"rep_{rank}", phase=phase) == 20
        assert shown.one("persia_phase_duration_seconds_count", phase="checkpoint") == 1
        assert seconds(1, "data") > 4 * 3 * 0.2 > seconds(0, "data")
        assert seconds(0, "sync") > 0.8 * 4 * 3 * 0.2 > seconds(0, "backward")
        of_launcher = [(name, dict(labels)) for (name, labels) in shown if {("role", "launcher")} <= labels]
        assert of_launcher and not [name for name, labels in of_launcher if "phase" in labels or name.startswith("persia_rank_")]
        assert re.search(r"goodput [\d.]+ %, 2 ranks, ", agent.output()) and "time of all ranks" in agent.output(), "the launcher is none"
    assert not any(name.startswith("persia_ph") for name, _ in gateway.metrics())
    compare = "import torch; a, b = torch.load('model0'), torch.load('model1'); print(sum(a[n].numpy().tobytes() == b[n].numpy().tobytes() for n in a), len(a))"
    same = subprocess.run([PYTHON, "-c", compare], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert same.stdout == "9 9\n", same.stderr


# torch's tutorial of DistributedDataParallel: a rank's number is an argument. The metric is made when each rank imports the program.
SPAWNED = """
import os, sys
IMPORTS
loss = persia_metrics.Gauge("my_app", "loss", "Loss.")

def train(rank, store):
    if "RANK" in sys.argv:
        os.environ["RANK"] = str(rank)
    init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=3)
    for _ in range(20):
        persia_metrics.count_steps()
        dist.barrier()
    loss.set(rank)
    dist.barrier()

if __name__ == "__main__":
    mp.spawn(train, args=(sys.argv[1],), nprocs=3)
"""


OURS, TORCHS = "import persia_metrics\n", """import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed import init_process_group
"""


@pytest.mark.parametrize("imports", [OURS + TORCHS, TORCHS + OURS], ids=["before_torch", "after_torch"])
@pytest.mark.parametrize("more", [(), ("RANK",)], ids=["argument", "environment"])
def test_the_process_group_gives_spawned_ranks_their_numbers(job, gateway, tmp_path, imports, more):
    (tmp_path / "train.py").write_text(SPAWNED.replace("IMPORTS", imports))
    env = {"PYTHONPATH": str(PYTHON_PACKAGE), "SLURM_PROCID": "7"}  # of the step in which the launcher runs
    agent = job.exec(PYTHON, tmp_path / "train.py", tmp_path / "store", *more, env=env)
    assert agent.wait(120) == 0, agent.output()
    shown = gateway.metrics()
    for rank in range(3):
        assert shown.one("my_app_loss", instance=f"rep_{rank}") == rank
        assert shown.one("persia_progress_steps_total", instance=f"rep_{rank}") == 20
    assert "train at once" not in agent.output()


def test_exec_quotes_a_library_that_it_does_not_know(job):
    agent = job.exec(PYTHON, "-c", "import os; print('value', os.environ.get('PERSIA_METRICS_TORCH'))", flags=["--instrument=tensorflow"])
    assert agent.wait() == 0
    assert '--instrument: "tensorflow" is not one of: torch, prometheus_client' in agent.output() and "value None" in agent.output()
