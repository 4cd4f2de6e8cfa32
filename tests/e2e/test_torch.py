"""A PyTorch program's phases, samples and steps, without a line of ours in it: Debian's torch."""

import ast

import pytest
from torch_program import MODEL, run, visits_of

TRAIN = """
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5)
for epoch in range(2):
    for batch, wanted in DataLoader(data, batch_size=16, shuffle=True, num_workers=int(sys.argv[1])):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(batch), wanted).backward()
        optimizer.step()
    schedule.step()
    model.eval()
    with torch.no_grad():
        for batch, wanted in DataLoader(data, batch_size=35):
            torch.nn.functional.mse_loss(model(batch), wanted)
    model.train()
torch.save(model.state_dict(), sys.argv[2])
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_each_part_of_a_step_has_its_phase(workers, tmp_path):
    visits, progress = visits_of(tmp_path, TRAIN, workers, tmp_path / "model")
    # Of each epoch: the start of the loader, 5 batches, and the end of the data; 1 + 2 + 1 of the evaluation.
    assert visits == {"data": 2 * (7 + 4), "forward": 10, "backward": 10, "optimizer": 10, "eval": 4, "checkpoint": 1}
    assert progress == {"steps_total": 10, "step": 10, "samples_total": 140}


def test_a_wrong_value_is_quoted_and_means_off(tmp_path):
    told = 'persia_metrics: PERSIA_METRICS_TORCH="yes": expected 0 or 1; torch is not instrumented\n'
    assert visits_of(tmp_path, TRAIN, 0, tmp_path / "model", torch="yes", stderr=told) == [{}, {}]


def test_results_are_the_same_to_the_bit(tmp_path):
    for torch in "01":
        run(tmp_path, MODEL + TRAIN, 0, tmp_path / torch, torch=torch)
    assert (tmp_path / "0").stat().st_size > 1000
    compare = """
import sys, torch
a, b = map(torch.load, sys.argv[1:])
print(sum(a[name].numpy().tobytes() == b[name].numpy().tobytes() for name in a), len(a), len(b))
"""
    assert run(tmp_path, compare, tmp_path / "0", tmp_path / "1") == "9 9 9\n"


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_the_workers_of_a_loader_mark_nothing(start, tmp_path):
    code = """
import sys, torch
from torch.utils.data import DataLoader

class Transformed:
    def __init__(self):
        self.transform = torch.nn.Linear(4, 4)
    def __len__(self):
        return 8
    def __getitem__(self, index):
        import persia_metrics
        out = self.transform(torch.randn(4)).detach()
        visits = persia_metrics.read_value("persia_phase", "duration_seconds", {"phase": "forward"}) or 0
        return out, torch.utils.data.get_worker_info() is not None, "persia_metrics.torch.patches" in sys.modules, visits

if __name__ == "__main__":
    torch.nn.Linear(4, 4)(torch.randn(4))
    for out, *seen in DataLoader(Transformed(), batch_size=4, num_workers=1, multiprocessing_context=sys.argv[1]):
        print(*(part.tolist() for part in seen))
"""
    line = f"{[True] * 4} {[True] * 4} {[0] * 4}\n"
    assert run(tmp_path, code, start) == 2 * line


def test_the_programs_own_phases_have_the_time(tmp_path):
    visits, progress = visits_of(
        tmp_path,
        """
import persia_metrics, torch.distributed as dist
dist.init_process_group("gloo", init_method="file://" + sys.argv[0] + ".store", rank=0, world_size=1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
with persia_metrics.phase("warm up"):
    loss = model(batch).sum()
    loss.backward()
    optimizer.step()
    dist.barrier()
class Inner(torch.nn.Module):
    def forward(self, rows):
        with persia_metrics.phase("lookup"):
            return model(rows)
Inner()(batch)
persia_metrics.set_step(100)
optimizer.step()
"""
    )
    assert visits == {"rendezvous": 1, "warm up": 1, "sync": 1, "forward": 1, "lookup": 1, "optimizer": 1}
    assert progress == {"steps_total": 2, "step": 100}


def test_collectives_are_sync(tmp_path):
    visits, _ = visits_of(
        tmp_path,
        """
import torch.distributed as dist
dist.init_process_group("gloo", init_method="file://" + sys.argv[0] + ".store", rank=0, world_size=1)
ones = torch.ones(3)
dist.all_reduce(ones)
dist.broadcast(ones, 0)
dist.all_gather([torch.zeros(3)], ones)
dist.all_gather_object([None], "x")
dist.barrier()
work = dist.all_reduce(ones, async_op=True)
work.wait()
"""
    )
    assert visits == {"rendezvous": 1, "sync": 7}


def test_errors_pass_and_leave_their_phases(tmp_path):
    visits, progress = visits_of(
        tmp_path,
        """
class Wrong(Exception):
    pass

class Broken(torch.nn.Module):
    def forward(self, rows):
        raise Wrong("of the program")

class Data:
    def __len__(self):
        return 1
    def __getitem__(self, index):
        raise Wrong("of the program")

optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
def closure():
    raise Wrong("of the program")

for call in (lambda: Broken()(batch), lambda: next(iter(DataLoader(Data()))), lambda: optimizer.step(closure)):
    try:
        call()
        raise SystemExit("no error")
    except Wrong as error:
        assert error.args == ("of the program",) and error.__cause__ is None
try:
    torch.ones(1).backward()
    raise SystemExit("no error")
except RuntimeError:
    pass
model(batch).sum().backward()
"""
    )
    assert visits == {"forward": 2, "data": 2, "optimizer": 1, "backward": 2}
    assert progress == {}


def test_a_closure_is_in_its_own_phases_and_two_optimizers_count_each_step_once(tmp_path):
    visits, progress = visits_of(
        tmp_path,
        """
def closure():
    loss = model(batch).square().mean()
    loss.backward()
    return loss

first = torch.optim.LBFGS(model.parameters(), max_iter=2, max_eval=2)
second = torch.optim.Adam(model.parameters())
for _ in range(3):
    first.step(closure)
    second.step()
del first
second.step()
"""
    )
    assert visits["optimizer"] == 7 and visits["forward"] == visits["backward"] >= 3
    assert progress == {"steps_total": 4, "step": 4}


# Optimizers by letters, in the order of their steps, and the training steps that these are.
STEPS_OF_SEVERAL = {
    "a" + 99 * "b": 100,  # fine-tuning after a freeze
    20 * "a" + 20 * "b" + 20 * "c": 60,  # folds
    10 * "a" + 10 * "b" + 10 * "a" + 10 * "b": 40,
    50 * "ab": 50,
    20 * "abc": 20,
    30 * "a" + 30 * "ab": 60,
    30 * "ab" + 30 * "b": 60,
    10 * "aaaaab": 50,  # a critic and a generator
}


def test_optimizers_that_alternate_count_once_and_one_that_goes_on_alone_counts_each_step(tmp_path):
    code = """
import persia_metrics
counts = {}
for sequence in STEPS:
    optimizers = {name: torch.optim.SGD(model.parameters(), lr=0.01) for name in sequence}
    before = persia_metrics.read_value("persia_progress", "steps_total") or 0
    for name in sequence:
        optimizers[name].step()
    counts[sequence] = persia_metrics.read_value("persia_progress", "steps_total") - before
print(counts)
"""
    told = run(tmp_path, MODEL + code.replace("STEPS", repr([*STEPS_OF_SEVERAL])))
    assert ast.literal_eval(told) == STEPS_OF_SEVERAL


def test_threads_do_not_disturb_the_marks_of_the_training(tmp_path):
    told = "persia-metrics: two threads are in phases at a time; what the second one marks is left out\n"
    visits, _ = visits_of(
        tmp_path,
        """
import threading

class Slow(torch.nn.Module):
    def forward(self, rows):
        thread = threading.Thread(target=lambda: model(rows))
        thread.start()
        thread.join()
        return rows

for _ in range(3):
    Slow()(batch)
""",
        stderr=told,
    )
    assert visits == {"forward": 3}
