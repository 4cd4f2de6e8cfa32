"""PyTorch programs and releases that the hooks do not expect: a hook that fails costs itself only."""

import json

import pytest
from torch_program import MODEL, SHOW, run, visits_of

pytestmark = pytest.mark.long


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
