"""Benchmark AI's client library: `emit({"alexnet.batchsize16.latency": 12.5})`.

The environment variable BENCHMARK_AI selects the mode when this module is imported:

- `stdout` (the default): prints each map as a line of JSON.
- `fifo`: writes it into the named pipe BENCHMARK_AI_FIFO_FILEPATH (/tmp/benchmark-ai/fifo, or /tmp/benchmark-ai-fifo, the default before
  September 2019, if only that one is there and has a reader). A daemon, for example persia-metrics-agent, creates and reads the pipe.
  Another user's pipe is refused, unless its group is PERSIA_METRICS_DIR_GROUP.
  The first call waits for it at most BENCHMARK_AI_FIFO_MAX_WAIT_TIME seconds (10), and checks every BENCHMARK_AI_FIFO_WAIT_TIME_STEP
  seconds (0.5). Each call waits while the pipe is full.
- `segment`: puts the values into streams of the group `benchmarkai`, in memory that persia-metrics-agent reads. It is the fastest
  mode, and the only one that never waits.

An empty variable, or a time that is negative or not a number, counts as not set.

The model is https://pypi.org/project/benchmarkai-client-lib. Thread safety: any thread, after a fork, and in handlers of Python's
`signal`.
"""

from __future__ import annotations

import json
import os
import select
from collections.abc import Mapping as _Mapping
from typing import Any, Callable, Dict, Mapping, Optional

from . import _native

__all__ = ["FifoNotCreatedInTimeError", "emit"]

_GROUP = "benchmarkai"
_MAX_STREAMS = 10_000  # more than fit into a segment of the default size


class FifoNotCreatedInTimeError(Exception):
    """The named pipe does not exist, or has no reader, and the time to wait for it is over."""


def _checked(metrics: Mapping[str, float]) -> Dict[str, float]:
    if not isinstance(metrics, _Mapping):
        raise TypeError(f"metrics must be a mapping of names to numbers, not {type(metrics).__name__}")
    if not metrics:
        raise ValueError("metrics has no values")
    return metrics if isinstance(metrics, dict) else dict(metrics)


def _to_pipe(metrics: Mapping[str, float]) -> None:
    """Writes a map of names to values as JSON, in several lines if one would be longer than a pipe takes as a whole.

    If a name is too long for a line, all others are written, then ValueError is raised.
    """
    values = _checked(metrics)
    whole = json.dumps(values)
    entries = [whole] if len(whole) < select.PIPE_BUF else [json.dumps({name: value}) for name, value in values.items()]
    try:
        _native.emit_to_pipe([entry[1:-1] for entry in entries])
    except TimeoutError as error:
        raise FifoNotCreatedInTimeError(f"{error.filename} {error.strerror}") from None


class _Streams:
    """One stream of the segment for each name."""

    def __init__(self) -> None:
        self._adders: Dict[str, Callable[[Any], None]] = {}

    def emit(self, metrics: Mapping[str, float]) -> None:
        """Adds each value to the stream of its name.

        If a value is not a number, all others are added, then the error is raised.
        """
        adders = self._adders
        first: Optional[Exception] = None
        for name, value in _checked(metrics).items():
            try:
                (adders.get(name) or self._adder(name))(value)
            except Exception as error:
                first = error if first is None else first
        if first is not None:
            raise first

    def _adder(self, name: str) -> Callable[[Any], None]:
        if len(self._adders) >= _MAX_STREAMS:
            self._adders.clear()  # a program with an unbounded set of names does not repeat them
        return self._adders.setdefault(name, _native.Stream(_GROUP, name, "", "", ()).add)


def _print(metrics: Mapping[str, float]) -> None:
    """Prints a map of names to values as a line of JSON."""
    print(json.dumps(_checked(metrics)))


def _emitter(environment: Mapping[str, str]) -> Callable[[Mapping[str, float]], None]:
    mode = (environment.get("BENCHMARK_AI") or "stdout").lower()
    if mode == "stdout":
        return _print
    if mode == "fifo":
        return _to_pipe
    if mode == "segment":
        return _Streams().emit
    raise ValueError(f"BENCHMARK_AI must be stdout, fifo or segment, not {mode!r}")


# Chosen once, so that a call of emit() does not read the environment.
emit: Callable[[Mapping[str, float]], None] = _emitter(os.environ)
"""Emits a map of names to numbers, in the mode of the environment.

TypeError: it is no map, or a value is not a number. ValueError: it is empty, or a name does not fit into a line of the pipe; all other
values are emitted. In the mode `fifo` also FifoNotCreatedInTimeError, BrokenPipeError while the pipe has no reader, and OSError.
"""
