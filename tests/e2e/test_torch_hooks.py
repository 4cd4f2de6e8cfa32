"""PyTorch programs and releases that the hooks do not expect: a hook that fails costs itself only."""

import json

from torch_program import MODEL, SHOW, run, visits_of

def test_a_class_of_optimizers_that_cannot_be_marked_works(tmp_path):
    told = "steps of Fixed are not marked: TypeError: nobody sets step\n"
    visits, progress = visits_of(
        tmp_path,
        """
class Meta(type):
    def __setattr__(cls, name, value):
        if value.__qualname__.startswith("mark_optimizers") or getattr(value, "_persia_metrics_marked", False):
            raise TypeError("nobody sets " + name)
        super().__setattr__(name, value)

class Fixed(torch.optim.SGD, metaclass=Meta):
    def step(self, closure=None):
        return "stepped"

assert Fixed(model.parameters(), lr=0.1).step() == "stepped"
""",
        stderr=told,
    )
    assert visits == progress == {}


def test_a_batch_that_cannot_be_counted_stops_nothing(tmp_path):
    told = "samples are not counted: a batch of type Odd: ValueError: no shape\n"
    visits, progress = visits_of(
        tmp_path,
        """
class Odd:
    @property
    def shape(self):
        raise ValueError("no shape")

for batch in DataLoader(data, batch_size=35, collate_fn=lambda rows: Odd()):
    pass
for batch in DataLoader(data, batch_size=35):
    pass
""",
        stderr=told,
    )
    assert visits == {"data": 8} and progress == {}


def test_the_samples_of_a_batch_are_its_first_dimension(run_python):
    run_python(
        """
import numpy, torch
from persia_metrics.torch.batches import samples_of
loop = []
loop.append(loop)
for batch, samples in [
    (torch.zeros(5, 3), 5),
    (torch.tensor(2.0), 1),
    ([torch.zeros(5, 3), torch.zeros(7)], 5),
    ({"ids": ["a", "b"], "rows": torch.zeros(6, 2)}, 6),
    (("text", ([torch.zeros(4)],)), 4),
    (["a", "b"], 0),
    (None, 0),
    (loop, 0),
    (numpy.zeros((3, 2)), 3),
]:
    assert samples_of(batch) == samples, batch
"""
    )


def test_a_release_without_a_function_loses_that_hook_alone(run_python):
    told = run_python(
        """
import types
from persia_metrics.torch import patches
patches.mark_loading(types.SimpleNamespace(__name__="torch.utils.data.dataloader"))
c10d = types.SimpleNamespace(__name__="c10d", **{name: len for name in patches._COLLECTIVES if name != "barrier"}, init_process_group=len)
patches.mark_collectives(c10d)
assert c10d.all_reduce([1, 2]) == 2 and c10d.all_reduce is not len
"""
    )
    assert told.splitlines() == [
        "torch.utils.data.dataloader has no _BaseDataLoaderIter in this release of torch: data loading is not instrumented",
        "c10d has no barrier in this release of torch: it is not instrumented",
        "c10d has no new_group in this release of torch: it is not instrumented",
    ]


def test_torch_that_is_loaded_is_instrumented_and_its_compiler_sees_no_marks(tmp_path):
    """A stand-in for the compiler of later releases, which 1.13 does not have."""
    code = (
        MODEL
        + """
import types
import persia_metrics.torch
torch.compiler = types.SimpleNamespace(is_compiling=lambda: compiling)
compiling = False
persia_metrics.torch.install()
persia_metrics.torch.install()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for compiling in (True, False):
    model(batch).sum().backward()
    optimizer.step()
    torch.save(model.state_dict(), sys.argv[0] + ".model")
"""
        + SHOW
    )
    visits, progress = json.loads(run(tmp_path, code, torch="0").splitlines()[-1])
    assert visits == {"forward": 1, "backward": 1, "optimizer": 1, "checkpoint": 1}
    assert progress == {"steps_total": 1, "step": 1}


def test_torchscript_compiles_the_functions_that_are_replaced_after_its_import(tmp_path):
    code = """
import torch
{used}
import persia_metrics.torch
persia_metrics.torch.install()

@torch.jit.script
def gradient(x):
    y = (x * x).sum()
    return torch.autograd.grad([y], [x])[0]

print(gradient(torch.ones(3, requires_grad=True)).tolist())
"""
    for used in ("", "torch.jit._builtins._get_builtin_table()"):
        assert run(tmp_path, code.format(used=used), torch="0") == "[2.0, 2.0, 2.0]\n"


def test_what_is_pickled_without_the_hooks_is_pickled_with_them(tmp_path):
    visits, _ = visits_of(
        tmp_path,
        """
import pickle, warnings
from multiprocessing.reduction import ForkingPickler
import torch.distributed as dist, torch.multiprocessing

dist.init_process_group("gloo", init_method="file://" + sys.argv[0] + ".store", rank=0, world_size=1)
parallel = torch.nn.parallel.DistributedDataParallel(model)
warnings.simplefilter("error")
assert ForkingPickler.dumps(model) and ForkingPickler.dumps(parallel.module)
parallel(batch).sum().backward()
for function in (torch.nn.Module.__call__, torch.save, torch.autograd.grad, torch.autograd.backward, dist.all_reduce, dist.Work.wait, DataLoader.__iter__):
    assert pickle.loads(pickle.dumps(function)) is function, function
""",
    )
    assert visits["sync"] == 4, "the wait for the gradients is one of them"


def test_a_worker_that_is_a_thread_leaves_out_its_own_marks_alone(run_python):
    run_python(
        """
import threading, types
from persia_metrics.torch import marks, patches

left_out = []
worker = types.SimpleNamespace(__name__="worker", _worker_loop=lambda: left_out.append(marks.forward.is_left_out()))
patches.leave_out_workers(worker)
thread = threading.Thread(target=worker._worker_loop)
thread.start()
thread.join()
other = threading.Thread(target=lambda: left_out.append(marks.forward.is_left_out()))
other.start()
other.join()
left_out.append(marks.forward.is_left_out())
worker._worker_loop()
left_out.append(marks.data.is_left_out())
assert left_out == [True, False, False, True, True], left_out
"""
    )


def test_steps_go_on_from_a_checkpoints(tmp_path):
    _, progress = visits_of(
        tmp_path,
        """
import persia_metrics
persia_metrics.set_step(60)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(5):
    optimizer.step()
""",
    )
    assert progress == {"steps_total": 5, "step": 65}
