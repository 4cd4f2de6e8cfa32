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


def test_a_batch_of_many_python_objects_is_not_looked_through(run_python):
    run_python(
        """
from persia_metrics.torch.batches import samples_of

class Part:
    looks = 0
    @property
    def shape(self):
        Part.looks += 1
        raise AttributeError("shape")

class Rows:
    shape = (6, 2)

tokens = [[Part()] * 512 for _ in range(256)]
deep = Part()
for _ in range(7):
    deep = (deep,) * 20
for batch, samples in [
    (tokens, 0),
    ({"ids": tokens}, 0),
    (deep, 0),
    (tuple(Part() for _ in range(1000)), 0),
    ({"names": ["a"] * 256, "ids": tokens, "rows": Rows()}, 6),
    ((*(Part() for _ in range(20)), Rows()), 6),
    ([*(Part() for _ in range(5)), Rows()], 6),
]:
    Part.looks = 0
    assert samples_of(batch) == samples, batch
    assert Part.looks <= 100, Part.looks
"""
    )


def test_optimizers_may_be_many_and_compare_as_they_like(run_python):
    """torch's tutorial on steps in the backward pass has one for each parameter; a dataclass compares its tensors."""
    run_python(
        """
import persia_metrics
from persia_metrics.torch.patches import _Steps

class Optimizer:
    compared = 0
    def __eq__(self, other):
        Optimizer.compared += 1
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    __hash__ = None

optimizers = [Optimizer() for _ in range(1000)]
for step in range(1, 4):
    for optimizer in optimizers:
        _Steps.count(optimizer)
    assert persia_metrics.read_value("persia_progress", "steps_total") == step
assert Optimizer.compared == 0
del optimizer, optimizers  # the next ones may have their ids
optimizers = [Optimizer() for _ in range(1000)]
for optimizer in 2 * optimizers:
    _Steps.count(optimizer)
assert persia_metrics.read_value("persia_progress", "steps_total") == 5
""",
        PERSIA_METRICS_ENABLED="1",
    )


def test_the_compiler_does_not_compile_the_frames_of_the_hooks(run_python):
    """A stand-in for the compiler of later releases: it keeps few compiled forms of one function, so that those of torch that call modules are skipped."""
    run_python(
        """
import sys, types
skipped = []
eval_frame = types.SimpleNamespace(skip_code=skipped.append)
sys.modules["torch._C"] = types.SimpleNamespace(_dynamo=types.SimpleNamespace(eval_frame=eval_frame))
from persia_metrics.torch import patches

class Module:
    def __call__(self):
        return "called"

nn = types.SimpleNamespace(Module=Module)
torch = types.SimpleNamespace(nn=nn, is_grad_enabled=lambda: True, compiler=types.SimpleNamespace(is_compiling=lambda: False))
patches.mark_modules(torch)
patches.mark_saving(types.SimpleNamespace(__name__="torch.serialization", save=len))
assert Module()() == "called"
assert Module.__call__.__code__ in skipped
assert [code.co_name for code in skipped] == ["outermost", "module_call", "call"], skipped
"""
    )


def test_torch_that_another_finder_finds_is_instrumented(run_python, tmp_path):
    """As in an editable installation, and in a frozen program."""
    package = tmp_path / "elsewhere" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("class nn:\n    class Module:\n        def __call__(self): pass\nis_grad_enabled = bool\n")
    (package / "serialization.py").write_text("def save(): pass\n")
    run_python(
        f"""
import importlib.machinery, importlib.util, sys

class Editable:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "torch":
            return importlib.machinery.PathFinder.find_spec(name, [{str(package.parent)!r}])

class AsksAll:
    # as hooks of other tools do
    def find_spec(self, name, path=None, target=None):
        sys.meta_path.remove(self)
        try:
            return importlib.util.find_spec(name)
        finally:
            sys.meta_path.append(self)

sys.meta_path += [AsksAll(), Editable]
import persia_metrics.torch
persia_metrics.torch.install()
import torch, torch.serialization
assert torch.nn.Module.__call__._persia_metrics_marked and torch.serialization.save._persia_metrics_marked
try:
    import torch.no_such
except ModuleNotFoundError as error:
    assert error.name == "torch.no_such"
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
