"""The elastic train loop: the members meet in an outer loop, and train and write checkpoints in an inner one."""

import contextlib
import time

import persia_metrics
from persia_metrics.torchelastic.metrics import getStream, put_metric
from phases import phase
from process_group import GroupBroken
from state import samples_of

MAX_FAILURES = 100
STEPS_OF_A_CHECKPOINT = 50


def train(coordinator, train_step, state, checkpoint, ledger):
    """Trains until the data ends, with the workers that are there. `checkpoint`: the file's path.

    Raises EtcdError if etcd does not answer, and GroupBroken if MAX_FAILURES rounds in a row made no step.
    """
    failures = 0
    while not coordinator.should_stop_training():
        snapshot = state.capture_snapshot()
        try:
            with phase("rendezvous"), timed("outer_train_loop.duration.ms"):
                place = coordinator.rendezvous_barrier()
                if place is None:
                    return
                ledger.note("rendezvous as rank %d of %d" % place)
                state.load(checkpoint)
                with timed("state_sync.duration.ms"), phase("sync"):
                    state.sync(coordinator.group)
            persia_metrics.set_step(state.step)
            meet = False
            while not meet and not coordinator.should_stop_training():
                snapshot = state.capture_snapshot()
                with timed("inner_train_loop.duration.ms"):
                    with timed("train_step.duration.ms"):
                        train_step(state)
                    report(state, checkpoint, ledger)
                    with phase("sync"):
                        meet, failures = coordinator.should_rendezvous(), 0
        except StopIteration:
            coordinator.signal_training_done()
        except GroupBroken as error:
            state.apply_snapshot(snapshot)
            coordinator.on_error(error)
            failures += 1
            if failures == MAX_FAILURES:
                raise


def report(state, checkpoint, ledger):
    """Publishes the job's own metrics after a step, and writes a checkpoint every STEPS_OF_A_CHECKPOINT steps."""
    ledger.note("step")
    persia_metrics.count_steps()
    persia_metrics.count_samples(samples_of(state.group))
    persia_metrics.set_step(state.step)
    stream = getStream("elastic_job")
    stream.add_value("world_size", state.group.world_size)
    if state.group.rank == 0:
        stream.add_value("loss", state.loss)
        stream.add_value("step", state.step)
        if state.step % STEPS_OF_A_CHECKPOINT == 0:
            with phase("checkpoint"), timed("checkpoint.write_latency_ms"):
                state.save(checkpoint)
            ledger.note("checkpoint")


@contextlib.contextmanager
def timed(metric):
    """Publishes the duration of the body in milliseconds, unless it raises."""
    start = time.perf_counter()
    yield
    put_metric(metric, 1000 * (time.perf_counter() - start))
