"""Benchmark AI's client library: `emit({"alexnet.batchsize16.latency": 12.5})`.

How values leave the process is chosen by the environment variable BENCHMARK_AI when this module is imported:

- `stdout` (the default): prints each map as a line of JSON.
- `fifo`: writes it into the named pipe BENCHMARK_AI_FIFO_FILEPATH (/tmp/benchmark-ai-fifo), which a daemon makes and reads, for
  example persia-metrics-agent. The first call waits for it, looking every BENCHMARK_AI_FIFO_WAIT_TIME_STEP seconds (0.5), for
  at most BENCHMARK_AI_FIFO_MAX_WAIT_TIME seconds (10); a call waits while the pipe is full.
- `segment`: puts the values into streams of the group `benchmarkai`, in memory that persia-metrics-agent reads. The fastest,
  and the only one that never waits.

A variable that is empty, or a time that is no number of seconds from 0 on, counts as one that is not set.

The model is https://pypi.org/project/benchmarkai-client-lib. Thread safety: any thread, after a fork, and in handlers of Python's
`signal`.
"""

from __future__ import annotations

import errno
import json
import math
import os
import select
import stat
import time
from collections.abc import Mapping as _Mapping
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from . import _native

__all__ = ["FifoNotCreatedInTimeError", "emit"]

_GROUP = "benchmarkai"
_LONGEST_WAIT = 365 * 86400.0  # more than a clock takes would be an error
_MOST_KEPT = 10_000  # streams; a segment of the usual size has no place for so many


class FifoNotCreatedInTimeError(Exception):
    """There is no named pipe, or nobody who reads it, and the time to wait for it is over."""


def _checked(metrics: Mapping[str, float]) -> Dict[str, float]:
    if not isinstance(metrics, _Mapping):
        raise TypeError(f"metrics must be a mapping of names to numbers, not {type(metrics).__name__}")
    if not metrics:
        raise ValueError("metrics has no values")
    return metrics if isinstance(metrics, dict) else dict(metrics)


def _lines(metrics: Dict[str, float]) -> Tuple[List[bytes], Optional[str]]:
    """JSON objects, a line each, which a pipe takes whole: longer writes of several processes would mix.

    Beside them a name that is too long for any line.
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


def _seconds(text: Optional[str], otherwise: float) -> float:
    try:
        seconds = float(text or "")
    except ValueError:
        return otherwise
    return min(seconds, _LONGEST_WAIT) if math.isfinite(seconds) and seconds >= 0 else otherwise


class _Fifo:
    """The pipe, opened at the first write, and again when its reader has gone.

    Each call waits for the pipe by itself, and without a lock: neither other threads, nor a signal handler, nor a forked child
    shall wait with it.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._path = environment.get("BENCHMARK_AI_FIFO_FILEPATH") or "/tmp/benchmark-ai-fifo"
        self._max_wait = _seconds(environment.get("BENCHMARK_AI_FIFO_MAX_WAIT_TIME"), 10)
        self._step = _seconds(environment.get("BENCHMARK_AI_FIFO_WAIT_TIME_STEP"), 0.5)
        # By path the descriptor, once the pipe is open. A dict, since its setdefault is one step.
        self._open_pipe: Dict[str, int] = {}

    def emit(self, metrics: Mapping[str, float]) -> None:
        """Writes a map of metrics' names to values as JSON, in one line or, where it would be too long, in several.

        A name that is too long for a line raises ValueError when all others are written.
        """
        lines, too_long = _lines(_checked(metrics))
        for line in lines:
            self._write(line)
        if too_long is not None:
            raise ValueError(f"a name does not fit into the {select.PIPE_BUF} bytes of a line: {too_long[:80]!r}...")

    def _write(self, line: bytes) -> None:
        descriptor = self._open_pipe.get(self._path)
        if descriptor is None:
            descriptor = self._first_open()
        try:
            os.write(descriptor, line)
        except BrokenPipeError:
            # The reader has gone. If another one has come, it gets the line; if not, nobody waits for one.
            self._reopen(descriptor)
            os.write(descriptor, line)

    def _first_open(self) -> int:
        """The open pipe, waited for."""
        deadline = time.monotonic() + self._max_wait
        while True:
            try:
                fresh = self._open()
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENXIO):
                    raise
                left = deadline - time.monotonic()
                if left <= 0:
                    why = "does not exist" if error.errno == errno.ENOENT else "has no reader"
                    raise FifoNotCreatedInTimeError(f"{self._path} {why} after {self._max_wait:g} s") from None
                time.sleep(min(self._step, left))
            else:
                kept = self._open_pipe.setdefault(self._path, fresh)
                if kept != fresh:  # another thread, or a signal handler in between, was first
                    os.close(fresh)
                return kept

    def _reopen(self, broken: int) -> None:
        try:
            fresh = self._open()
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENXIO):
                raise BrokenPipeError(errno.EPIPE, "nobody reads the pipe any more", self._path) from None
            raise
        # Onto the same number: another thread may be about to write to it.
        os.dup2(fresh, broken, inheritable=False)
        os.close(fresh)

    def _open(self) -> int:
        # To open a pipe that nobody reads would take for ever without O_NONBLOCK; with it, it is ENXIO.
        descriptor = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(errno.EINVAL, "not a named pipe; BENCHMARK_AI_FIFO_FILEPATH has to name one", self._path)
        os.set_blocking(descriptor, True)
        return descriptor


class _Streams:
    """A stream of the segment for each name."""

    def __init__(self) -> None:
        self._adders: Dict[str, Callable[[Any], None]] = {}

    def emit(self, metrics: Mapping[str, float]) -> None:
        """Adds each value to the stream of its name.

        One that is no number raises an error when all others are added.
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
        if len(self._adders) >= _MOST_KEPT:
            self._adders.clear()  # names without end: none of them comes again
        return self._adders.setdefault(name, _native.Stream(_GROUP, name).add)


def _print(metrics: Mapping[str, float]) -> None:
    """Prints a map of metrics' names to values as a line of JSON."""
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


# Once: a call of emit() then pays for no look at the environment.
emit: Callable[[Mapping[str, float]], None] = _emitter(os.environ)
