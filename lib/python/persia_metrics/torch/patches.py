"""Puts torch's functions into phases. Each function here gets one of torch's modules, right after Python has executed it.

The replaced functions run inside the program's training step, so no failure of a hook may reach it: it is caught and logged once, and the hook
is switched off. The program's own errors pass unchanged. Results stay the same to the bit: nothing here computes with a tensor.
"""

from __future__ import annotations

import functools
import logging
import sys
import threading
import weakref
from types import ModuleType
from typing import Any, Callable, Dict

from .. import _native
from . import marks
from .batches import samples_of
from .marks import marked

_log = logging.getLogger("persia_metrics")

# Functions in which a rank waits for others. Some releases of torch do not have all of them.
_COLLECTIVES = ("all_gather", "all_reduce", "barrier", "broadcast", "gather", "recv", "reduce", "reduce_scatter", "scatter", "send")
_MORE_COLLECTIVES = (
    *("_all_gather_base", "_reduce_scatter_base", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object"),
    *("all_reduce_coalesced", "all_to_all", "all_to_all_single", "broadcast_object_list", "gather_object", "monitored_barrier"),
    *("recv_object_list", "reduce_scatter_tensor", "scatter_object_list", "send_object_list"),
)


def _replace(owner: Any, name: str, wrap: Callable[[Any], Any], reexported_by: str = "", optional: bool = False) -> None:
    """Replaces owner.name by wrap(owner.name), also in the module `reexported_by`. A second call for one function has no effect."""
    function = getattr(owner, name, None)
    if function is None:
        if not optional:
            _log.warning("%s has no %s in this release of torch: it is not instrumented", owner.__name__, name)
        return
    if getattr(function, "_persia_metrics_marked", False):
        return
    replacement = wrap(function)
    replacement._persia_metrics_marked = True
    # By these, pickle finds it.
    if isinstance(owner, type):
        replacement.__module__, replacement.__qualname__ = owner.__module__, f"{owner.__qualname__}.{name}"
    else:
        replacement.__module__, replacement.__qualname__ = owner.__name__, name
    _let_script(function, replacement)
    _hide_from_compiler(replacement)
    setattr(owner, name, replacement)
    package = sys.modules.get(reexported_by)
    if package is not None and getattr(package, name, None) is function:
        setattr(package, name, replacement)


def _let_script(function: Any, replacement: Any) -> None:
    """TorchScript knows its built-in functions by their identities. Before its import there is nothing to do: it sees the replacement."""
    builtins: Any = sys.modules.get("torch.jit._builtins")
    known, table = getattr(builtins, "_builtin_ops", None), getattr(builtins, "_builtin_table", None)
    if not isinstance(known, list):
        return
    for operator in [entry[1] for entry in known if entry[0] is function]:
        known.append((replacement, operator))
        if table is not None:  # it is made from the list, at the first use
            table[id(replacement)] = operator


def _hide_from_compiler(function: Any) -> None:
    """torch.compile compiles what the function calls, as it does for those of torch, and not the function's own frame.

    Otherwise all modules would share the few compiled forms that it keeps of one function. It still inlines the function.
    """
    compiler: Any = getattr(getattr(sys.modules.get("torch._C"), "_dynamo", None), "eval_frame", None)
    if hasattr(compiler, "skip_code"):  # torch 1.13 has no compiler
        compiler.skip_code(function.__code__)


def _mark(owner: Any, name: str, mark: _native.Mark, **how: Any) -> None:
    _replace(owner, name, lambda function: marked(function, mark), **how)


def mark_modules(torch: Any) -> None:
    """Puts the outermost call of a module into forward, or into eval if gradients are off."""
    is_compiling: Any = getattr(getattr(torch, "compiler", None), "is_compiling", None)
    if is_compiling is not None:
        marks.is_compiling = is_compiling
    is_left_out, is_grad_enabled = marks.forward.is_left_out, torch.is_grad_enabled
    forward, evaluation = marks.forward, marks.evaluation

    def outermost(call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        mark = forward if is_grad_enabled() else evaluation
        mark.enter()
        try:
            return call(*args, **kwargs)
        finally:
            mark.leave()

    _hide_from_compiler(outermost)

    # Each is called for every module of a model, so that a test of `is_compiling` in one wrapper for both would cost time.
    def wrap_compiled(call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def module_call(*args: Any, **kwargs: Any) -> Any:
            if is_compiling() or is_left_out():
                return call(*args, **kwargs)
            return outermost(call, args, kwargs)

        return module_call

    def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def module_call(*args: Any, **kwargs: Any) -> Any:
            if is_left_out():
                return call(*args, **kwargs)
            return outermost(call, args, kwargs)

        return module_call

    _replace(torch.nn.Module, "__call__", wrap if is_compiling is None else wrap_compiled)


class _Unserializable(int):
    """The key of a hook. torch looks at the key to see whether it should warn when the tensor is pickled."""

    __torch_unserializable__ = True


class _Reduction:
    """The wait for the gradients of other ranks, at the end of a backward pass with DistributedDataParallel.

    The reducer waits in a callback that autograd calls after the last node, and queues it when it has all gradients. A hook of one
    parameter queues ours before that.
    """

    queue: Callable[[Callable[[], None]], None]

    @staticmethod
    def begins() -> None:
        # In a thread of autograd, for CUDA, the reducer does not wait, and the backward pass is not this thread's.
        if marks.backward.is_left_out():
            marks.sync.enter()

    @classmethod
    def watch(cls, model: Any) -> None:
        queue, begins, fails = cls.queue, cls.begins, False
        parameter = next((one for one in model.parameters() if one.requires_grad), None)
        if parameter is None:
            return

        def announce(_: Any) -> None:
            nonlocal fails
            if fails:
                return
            try:
                queue(begins)
            except Exception as error:
                fails = True
                _log.warning("%s: %s: %s", _STAYS, type(error).__name__, error)

        handle = parameter.register_hook(announce)
        hooks = parameter._backward_hooks
        if handle.id in (hooks or ()):
            hooks[_Unserializable(handle.id)] = hooks.pop(handle.id)


_STAYS = "the wait for gradients of other ranks stays in backward"


def mark_backward(autograd: Any) -> None:
    """Puts backward passes into backward: torch.Tensor.backward calls torch.autograd.backward."""
    enter, leave, leave_sync = marks.backward.enter, marks.backward.leave, marks.sync.leave

    def wrap(backward: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(backward)
        def call(*args: Any, **kwargs: Any) -> Any:
            if marks.is_compiling():
                return backward(*args, **kwargs)
            entered = enter()
            try:
                return backward(*args, **kwargs)
            finally:
                leave_sync()  # also at the end of a pass inside another one
                if entered:
                    leave()

        return call

    _Reduction.queue = autograd.Variable._execution_engine.queue_callback
    for name in ("backward", "grad"):
        _replace(autograd, name, wrap)


def mark_reduction(parallel: Any) -> None:
    """Puts what DistributedDataParallel waits for into sync."""

    def wrap(init: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(init)
        def call(self: Any, *args: Any, **kwargs: Any) -> None:
            init(self, *args, **kwargs)
            try:
                _Reduction.watch(self)
            except Exception as error:
                _log.warning("%s: %s: %s", _STAYS, type(error).__name__, error)

        return call

    _replace(parallel.DistributedDataParallel, "__init__", wrap)
    _mark(parallel.DistributedDataParallel, "_sync_buffers", marks.sync, optional=True)
    for name in ("_sync_module_states", "_verify_param_shape_across_processes"):
        _mark(parallel, name, marks.sync, optional=True)


def mark_collectives(c10d: Any) -> None:
    """Puts collectives, messages, and the wait for asynchronous ones into sync, and the start of process groups into rendezvous."""
    for name in (*_COLLECTIVES, *_MORE_COLLECTIVES):
        _mark(c10d, name, marks.sync, reexported_by="torch.distributed", optional=name in _MORE_COLLECTIVES)
    for name in ("init_process_group", "new_group"):
        _mark(c10d, name, marks.rendezvous, reexported_by="torch.distributed")
    work = getattr(c10d, "Work", None)
    if work is not None:
        _mark(work, "wait", marks.sync)


class _Steps:
    """Counts training steps: a step of an optimizer that has stepped in the present one begins the next.

    So several that alternate count once. If one goes on alone, each of its steps counts, also the first: that seemed to belong to the last
    step of the others.
    """

    # The optimizers that have stepped in it, by their ids, in the order of their steps. A program may have one for each parameter, of a class
    # that compares tensors.
    present: Dict[int, weakref.ref[Any]] = {}
    former: Dict[int, weakref.ref[Any]] = {}

    @classmethod
    def count(cls, optimizer: Any) -> None:
        number = id(optimizer)
        has_stepped = cls._has(cls.present, optimizer)
        if not has_stepped and any(other() is not None for other in cls.present.values()):
            cls.present.pop(number, None)  # of one that is gone
            cls.present[number] = weakref.ref(optimizer)
            return
        goes_on_alone = has_stepped and number != next(iter(cls.present)) and not cls._has(cls.former, optimizer)
        _native.count_steps(2 if goes_on_alone else 1)
        cls.former, cls.present = cls.present, {number: weakref.ref(optimizer)}

    @staticmethod
    def _has(step: Dict[int, weakref.ref[Any]], optimizer: Any) -> bool:
        reference = step.get(id(optimizer))
        return reference is not None and reference() is optimizer


def mark_optimizers(module: Any) -> None:
    """Puts `step` of each optimizer's class into optimizer, when the class makes its first object, and counts steps."""
    enter, leave, count = marks.optimizer.enter, marks.optimizer.leave, _Steps.count

    def mark_step(step: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(step)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if marks.is_compiling() or not enter():
                return step(self, *args, **kwargs)
            try:
                result = step(self, *args, **kwargs)
            finally:
                leave()
            count(self)
            return result

        return call

    # torch itself wraps `step` there, for its profiler.
    def wrap(patch_step: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(patch_step)
        def call(self: Any, *args: Any, **kwargs: Any) -> None:
            patch_step(self, *args, **kwargs)
            try:
                _replace(type(self), "step", mark_step)
            except Exception as error:  # a class whose attributes cannot be set
                _log.warning("steps of %s are not marked: %s: %s", type(self).__name__, type(error).__name__, error)

        return call

    name = "_hook_for_profile" if hasattr(module.Optimizer, "_hook_for_profile") else "_patch_step_function"
    _replace(module.Optimizer, name, wrap)


def mark_saving(serialization: Any) -> None:
    """Puts torch.save into checkpoint."""
    _mark(serialization, "save", marks.checkpoint, reexported_by="torch")


class _Samples:
    """Counts the samples of batches, while gradients are on: those of an evaluation are no progress."""

    counts = True

    @classmethod
    def count(cls, batch: Any) -> None:
        if not cls.counts:
            return
        try:
            if sys.modules["torch"].is_grad_enabled():
                _native.count_samples(samples_of(batch))
        except Exception as error:
            cls.counts = False
            _log.warning("samples are not counted: a batch of type %s: %s: %s", type(batch).__name__, type(error).__name__, error)


def mark_loading(dataloader: ModuleType) -> None:
    """Puts the start of a data loader, and the wait for each batch, into data, and counts samples."""
    enter, leave, count = marks.data.enter, marks.data.leave, _Samples.count

    def wrap(next_batch: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @functools.wraps(next_batch)
        def call(self: Any) -> Any:
            if not enter():
                return next_batch(self)
            try:
                batch = next_batch(self)
            finally:
                leave()
            count(batch)
            return batch

        return call

    iterator = getattr(dataloader, "_BaseDataLoaderIter", None)
    if iterator is None:
        _log.warning("%s has no _BaseDataLoaderIter in this release of torch: data loading is not instrumented", dataloader.__name__)
        return
    # Python calls __next__ by the class: an alias `next` is not used in Python 3.
    _replace(iterator, "__next__", wrap)
    _mark(dataloader.DataLoader, "__iter__", marks.data)


def leave_out_workers(worker: Any) -> None:
    """Enters no marks in the workers of a data loader, for their transforms. A worker may also be a thread of the trainer."""

    def wrap(loop: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(loop)
        def call(*args: Any, **kwargs: Any) -> None:
            _native.leave_out_marks(threading.current_thread() is not threading.main_thread())
            loop(*args, **kwargs)

        return call

    _replace(worker, "_worker_loop", wrap)
