"""Phases, samples and steps of a PyTorch program, without a change of the program.

`PERSIA_METRICS_TORCH=1` enables them, which the agent's `exec --instrument=torch` sets. The start-up hook (persia_metrics_startup.py) then calls
`patches.py` after the import of each of torch's modules. `marks.py` has the phases. This package never imports torch.
"""

from __future__ import annotations


def install() -> None:
    """Does what PERSIA_METRICS_TORCH=1 does, for an installation without the start-up hook: a folder on PYTHONPATH, for example.

    Call it before the program makes its optimizers; before or after `import torch`. A second call has no effect. Thread safety: none.
    """
    import persia_metrics_startup

    persia_metrics_startup.register(persia_metrics_startup.TORCH)
