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

import errno
import json
import math
import os
import select
import time
from collections.abc import Mapping as _Mapping
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from . import _native

__all__ = ["FifoNotCreatedInTimeError", "emit"]

_GROUP = "benchmarkai"
_DEFAULT_PATHS = ("/tmp/benchmark-ai/fifo", "/tmp/benchmark-ai-fifo")  # now, and before September 2019
_MAX_WAIT = 365 * 86400.0  # time.sleep raises for very large values
_MAX_STREAMS = 10_000  # more than fit into a segment of the default size


class FifoNotCreatedInTimeError(Exception):
    """The named pipe does not exist, or has no reader, and the time to wait for it is over."""


def _checked(metrics: Mapping[str, float]) -> Dict[str, float]:
    if not isinstance(metrics, _Mapping):
        raise TypeError(f"metrics must be a mapping of names to numbers, not {type(metrics).__name__}")
    if not metrics:
        raise ValueError("metrics has no values")
    return metrics if isinstance(metrics, dict) else dict(metrics)


def _lines(metrics: Dict[str, float]) -> Tuple[List[bytes], Optional[str]]:
    """The metrics as lines of JSON, and a name that is too long for any line, if there is one.

    No line is longer than PIPE_BUF: longer writes of several processes could interleave.
    """
    whole = json.dumps(metrics).encode() + b"\n"
    if len(whole) <= select.PIPE_BUF:
        return [whole], None
    lines: List[bytes] = []
    too_long = None
    line = b""
    for name, value in metrics.items():
        entry = json.dumps({name: value})[1:-1].encode()
        if len(entry) + len(b"{}\n") > select.PIPE_BUF:
            too_long = too_long or name
        elif line and len(line) + len(entry) + len(b"{, }\n") > select.PIPE_BUF:
            lines.append(b"{" + line + b"}\n")
            line = entry
        else:
            line = line + b", " + entry if line else entry
    if line:
        lines.append(b"{" + line + b"}\n")
    return lines, too_long


def _seconds(text: Optional[str], default: float) -> float:
    try:
        seconds = float(text or "")
    except ValueError:
        return default
    return min(seconds, _MAX_WAIT) if math.isfinite(seconds) and seconds >= 0 else default


class _Fifo:
    """The pipe, opened at the first write, and reopened when its reader has closed it.

    A call that waits for the pipe holds no lock, so that other threads, signal handlers and forked children do not wait for it.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        path = environment.get("BENCHMARK_AI_FIFO_FILEPATH")
        self._paths = (path,) if path else _DEFAULT_PATHS
        self._max_wait = _seconds(environment.get("BENCHMARK_AI_FIFO_MAX_WAIT_TIME"), 10)
        self._step = _seconds(environment.get("BENCHMARK_AI_FIFO_WAIT_TIME_STEP"), 0.5)
        # The open pipe's descriptor and path, or nothing. A dict, because its setdefault is atomic.
        self._pipe: Dict[str, Tuple[int, str]] = {}

    def emit(self, metrics: Mapping[str, float]) -> None:
        """Writes a map of names to values as JSON, in several lines if one would be too long.

        If a name is too long for a line, all others are written, then ValueError is raised.
        """
        lines, too_long = _lines(_checked(metrics))
        for line in lines:
            self._write(line)
        if too_long is not None:
            raise ValueError(f"a name does not fit into a line of {select.PIPE_BUF} bytes: {too_long[:80]!r}...")

    def _write(self, line: bytes) -> None:
        descriptor, path = self._pipe.get("pipe") or self._first_open()
        try:
            os.write(descriptor, line)
        except BrokenPipeError:
            # The reader has closed the pipe. A new reader gets the line; without one, this raises immediately.
            self._reopen(descriptor, path)
            os.write(descriptor, line)

    def _first_open(self) -> Tuple[int, str]:
        """Waits for the pipe and opens it."""
        deadline = time.monotonic() + self._max_wait
        while True:
            try:
                fresh = self._open_first()
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENXIO):
                    raise
                left = deadline - time.monotonic()
                if left <= 0:
                    why = "does not exist" if error.errno == errno.ENOENT else "has no reader"
                    raise FifoNotCreatedInTimeError(f"{error.filename} {why} after {self._max_wait:g} s") from None
                time.sleep(min(self._step, left))
            else:
                kept = self._pipe.setdefault("pipe", fresh)
                if kept is not fresh:  # another thread or a signal handler opened it first
                    os.close(fresh[0])
                return kept

    def _open_first(self) -> Tuple[int, str]:
        """Opens the first of the paths that has a pipe with a reader."""
        told: Optional[OSError] = None
        for path in self._paths:
            try:
                return _native.open_emit_pipe(path), path
            except OSError as error:
                # The first path's error is raised, unless the pipe is at the other one.
                if told is None or (told.errno == errno.ENOENT and error.errno == errno.ENXIO):
                    told = error
                if told.errno not in (errno.ENOENT, errno.ENXIO):
                    break
        assert told is not None
        raise told

    def _reopen(self, broken: int, path: str) -> None:
        try:
            fresh = _native.open_emit_pipe(path)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENXIO):
                raise BrokenPipeError(errno.EPIPE, "the named pipe has no reader any more", path) from None
            raise
        # The same number, because another thread may be about to write to it.
        os.dup2(fresh, broken, inheritable=False)
        os.close(fresh)


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
        return _Fifo(environment).emit
    if mode == "segment":
        return _Streams().emit
    raise ValueError(f"BENCHMARK_AI must be stdout, fifo or segment, not {mode!r}")


# Chosen once, so that a call of emit() does not read the environment.
emit: Callable[[Mapping[str, float]], None] = _emitter(os.environ)
"""Emits a map of names to numbers, in the mode of the environment.

TypeError: it is no map, or a value is not a number. ValueError: it is empty, or a name does not fit into a line of the pipe; all other
values are emitted. In the mode `fifo` also FifoNotCreatedInTimeError, BrokenPipeError while the pipe has no reader, and OSError.
"""
