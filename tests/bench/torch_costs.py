"""What a training step of PyTorch takes longer with the phases of persia_metrics.torch: alone, and in a rank with DistributedDataParallel.

One process trains in turns with the marks and without, by putting torch's own functions back in between. Its result is the median of the
differences between neighbouring turns, in processor time. The model is small, so that its own time disturbs little: 10 layers, each a module
whose call passes through a mark.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROCESSES = 3
TURNS = 40
STEPS = 50  # of a turn


def step_of(model, data):
    """A function that trains one step, and the class of its optimizer."""
    import torch

    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        (rows,) = next(data)
        optimizer.zero_grad()
        model(rows).sum().backward()
        optimizer.step()

    return step, type(optimizer)


def training(kind, folder):
    """A step, the places of functions that are marked, and a model's hooks."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = torch.nn.Sequential(*(torch.nn.Linear(16, 16) for _ in range(10)), torch.nn.BatchNorm1d(16))
    data = iter(DataLoader(TensorDataset(torch.randn(8 * TURNS * STEPS, 16)), batch_size=2))
    places = [(torch.nn.Module, "__call__"), (torch.autograd, "backward"), (_BaseDataLoaderIter, "__next__")]
    hooks = {}
    if kind == "ddp":
        parallel = torch.nn.parallel.DistributedDataParallel
        torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
        model = parallel(model)
        places.append((parallel, "_sync_buffers"))
        hooks = next(model.parameters())._backward_hooks
        assert len(hooks) == 1
    step, optimizer = step_of(model, data)
    return step, [*places, (optimizer, "step")], hooks


def added(kind, folder):
    """The microseconds of processor time that the marks add to a step."""
    step, places, hooks = training(kind, folder)
    marked = [getattr(owner, name) for owner, name in places]
    plain = [function.__wrapped__ for function in marked]
    marked_hooks = dict(hooks)

    def turn(functions, of_model):
        for (owner, name), function in zip(places, functions):
            setattr(owner, name, function)
        hooks.clear()
        hooks.update(of_model)
        step()  # warm
        start = time.thread_time_ns()
        for _ in range(STEPS):
            step()
        return (time.thread_time_ns() - start) / STEPS / 1000

    turn(marked, marked_hooks)
    return statistics.median(turn(marked, marked_hooks) - turn(plain, {}) for _ in range(TURNS))


def measure(build):
    """us by `torch/alone/added` and `torch/ddp/added`, a number a process."""
    from jobs import clean_environment

    results = {"torch/alone/added": [], "torch/ddp/added": []}
    for _ in range(PROCESSES):
        for kind in ("alone", "ddp"):
            with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
                # The folder's file persia_metrics.pth takes effect, as in a folder of installed packages.
                Path(directory, "sitecustomize.py").write_text(f"import site\nsite.addsitedir({str(build / 'lib/python')!r})\n")
                env = {**clean_environment(), "PYTHONPATH": f"{directory}:{build / 'lib/python'}", "PERSIA_METRICS_TORCH": "1"}
                env["PERSIA_METRICS_DIR"] = f"{directory}/metrics"
                answer = subprocess.run(["/usr/bin/python3", __file__, kind, directory], env=env, check=True, capture_output=True, text=True)
            results[f"torch/{kind}/added"].append(json.loads(answer.stdout))
    return results


if __name__ == "__main__":
    print(json.dumps(added(sys.argv[1], sys.argv[2])))
