"""How far the training is: the steps, samples and tokens that are done, and the number of steps of the whole training.

The agent derives rates and the remaining time from them. In data-parallel training, each rank counts each step, and the samples and
tokens of its own batches. The number of the present step is what the program has set last by `set_step`, 0 before that, and the steps that
the process has counted since: a program that continues from a checkpoint calls `set_step` once. It may also set the number of each step; that
number stands until the program sets the next one. OverflowError: a negative number; TypeError: not a whole number,
which those of NumPy and integer tensors of one element are.
"""

from __future__ import annotations

from . import _native

count_steps = _native.count_steps
count_samples = _native.count_samples
count_tokens = _native.count_tokens
set_total_steps = _native.set_total_steps
