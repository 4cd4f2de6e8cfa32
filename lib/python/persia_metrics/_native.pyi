"""The native module: the library's handles. Programs use persia_metrics instead."""

import os
from typing import Any, Callable, Dict, List, Optional, Sequence, SupportsFloat, SupportsIndex, Tuple, Union

__version__: str
DEFAULT_BOUNDS: Tuple[float, ...]
CATALOG: Tuple[Tuple[str, int, int, str, str, str], ...]
"""Name, table, type, unit, label and help of each entry of catalog.h."""
CATALOG_GROUP: str

_Observations = Tuple[int, float, Tuple[float, ...], Tuple[int, ...]]
"""Count, sum, bounds and buckets."""
_Number = Union[float, SupportsFloat, SupportsIndex]
_Labels = Optional[Sequence[Tuple[str, str]]]

class Counter:
    def __new__(cls, group: str, name: str, help: str, unit: str, labels: _Labels) -> Counter: ...
    def inc(self, amount: _Number = 1) -> None:
        """Adds `amount`. A negative or non-finite one is ignored and counted as dropped."""
    def _set_function(self, function: Optional[Callable[[], float]], /) -> None:
        """Takes the value from a callable from now on; None ends this."""
    def _read(self) -> float: ...

class Gauge:
    def __new__(cls, group: str, name: str, help: str, unit: str, labels: _Labels, merge: int) -> Gauge: ...
    def inc(self, amount: _Number = 1) -> None:
        """Adds `amount`; a gauge that was never set starts at 0."""
    def dec(self, amount: _Number = 1) -> None:
        """Subtracts `amount`; a gauge that was never set starts at 0."""
    def set(self, value: _Number) -> None:
        """Sets the value to any float, including NaN and infinities."""
    def unset(self) -> None:
        """Makes it a gauge that was never set."""
    def _set_function(self, function: Optional[Callable[[], float]], /) -> None:
        """Takes the value from a callable from now on; None ends this."""
    def _read(self) -> Optional[float]: ...

class Histogram:
    def __new__(
        cls, group: str, name: str, help: str, unit: str, labels: _Labels, bounds: Tuple[float, ...],
        native: Tuple[float, int, float, float] = ...,
    ) -> Histogram: ...
    def observe(self, amount: _Number) -> None:
        """Adds one observation. NaN is ignored and counted as dropped."""
    def _read(self) -> _Observations: ...

class TimeCost:
    def __new__(
        cls, group: str, name: str, help: str, unit: str, labels: _Labels, bounds: Tuple[float, ...]
    ) -> TimeCost: ...
    def observe(self, seconds: _Number) -> None:
        """Adds one duration to the histogram, and sets the gauge to it."""
    def _read(self) -> Tuple[_Observations, Optional[float]]: ...

class BucketedHistogram:
    def __new__(
        cls, group: str, name: str, help: str, unit: str, labels: Sequence[Tuple[str, str]], bounds: Tuple[float, ...]
    ) -> BucketedHistogram: ...
    def add(self, counts: Tuple[int, ...], sum: float, /) -> None:
        """Adds the counts to the buckets, one for each bound and one for +Inf, and the sum to the sum."""

class ClientCounter:
    """A value of prometheus_client, and its series. `labels` None: no series. The same holds for the next two."""
    def __new__(cls, group: str, name: str, help: str, unit: str, labels: _Labels) -> ClientCounter: ...
    def inc(self, amount: _Number, /) -> None: ...
    def put(self, value: _Number, /) -> None:
        """Sets the value. The series does not fall."""
    def get(self) -> float: ...
    def detach(self) -> None:
        """From now on, nothing is recorded in the segment."""

class ClientGauge:
    def __new__(cls, group: str, name: str, help: str, unit: str, labels: _Labels, merge: int) -> ClientGauge: ...
    def inc(self, amount: _Number, /) -> None: ...
    def put(self, value: _Number, /) -> None: ...
    def get(self) -> float: ...
    def detach(self) -> None: ...

class ClientDistribution:
    """Cell 0 is the sum, the others are the buckets; without bounds, cell 1 is the count."""
    def __new__(
        cls, group: str, name: str, help: str, unit: str, labels: _Labels, bounds: Tuple[float, ...]
    ) -> ClientDistribution: ...
    def observe(self, amount: _Number, /) -> None: ...
    def inc(self, cell: int, amount: _Number, /) -> None: ...
    def put(self, cell: int, value: _Number, /) -> None: ...
    def get(self, cell: int, /) -> float: ...
    def detach(self) -> None: ...

class Stream:
    def __new__(cls, group: str, name: str, help: str, unit: str, labels: _Labels) -> Stream: ...
    def add(self, value: _Number) -> None:
        """Records a value. NaN becomes the last value, but enters neither sums nor buckets."""
    def _read(self) -> Tuple[int, float, Optional[float]]:
        """Count, sum, and last value."""

class Info:
    def __new__(cls, group: str, name: str, help: str, unit: str, labels: _Labels) -> Info: ...
    def _set(self, texts: Sequence[Tuple[str, str]], /) -> None:
        """Replaces the texts."""
    def _remove(self) -> bool: ...
    def unset(self) -> None:
        """Takes the texts away."""

class Enum:
    def __new__(cls, group: str, name: str, help: str, unit: str, labels: _Labels, states: Tuple[str, ...]) -> Enum: ...
    def _set(self, state: str, /) -> None:
        """Changes the state. An unknown one is ignored and counted as dropped."""
    def _remove(self) -> bool: ...
    def unset(self) -> None:
        """Takes the state away."""
    def _read(self) -> Optional[str]: ...

class Phase:
    def __new__(cls, name: str) -> Phase: ...
    def __enter__(self) -> Phase:
        """The process is in the phase from now on."""
    def __exit__(self, *error: object) -> None:
        """Leaves the phase: the process is in the one again in which it was entered."""
    def value(self) -> float:
        """The seconds that the process has spent in it, with those of now."""

class Mark:
    def __new__(cls, name: str, kind: int, left_out_in: int, in_programs_phases: bool = False) -> Mark: ...
    def is_left_out(self) -> bool:
        """Whether enter() would do nothing now."""
    def enter(self) -> bool:
        """Enters the phase, unless the program is in one of its own. False: left out, inside a mark of a kind in `left_out_in`."""
    def leave(self) -> bool:
        """Leaves the phase. False: the thread's innermost mark is another one."""

def init(
    job_name: Optional[str],
    role: Optional[str],
    replica: Optional[int],
    labels: Sequence[Tuple[str, str]],
    metrics_dir: Union[str, "os.PathLike[str]", None],
    enabled: bool,
    /,
) -> Tuple[bool, str]: ...
def exporting() -> bool: ...
def mark_exit(code: int, /) -> None:
    """Marks this process as left by a normal exit: for one that ends by os._exit on purpose."""

def set_process_group_rank(rank: int, /) -> None:
    """The rank of this process in its group of several processes."""

def remove_series(group: str, name: str, labels: Sequence[Tuple[str, str]], /) -> bool:
    """Removes a series until it is made again. False: there is none."""

def has_series(group: str, name: str, labels: Sequence[Tuple[str, str]], /) -> bool:
    """Whether there is a series. False: it was never made, was refused or removed, or metrics are disabled."""

def emit_to_pipe(entries: List[str], /) -> None:
    """Writes entries of JSON objects (`"name": 1.5`) to the pipe of emit, in lines that it takes whole, and waits for it.

    ValueError: an entry is too long for a line; all others are written. TimeoutError: no pipe, or no reader, in time.
    """

def find_series(series: Dict[Tuple[object, ...], Any], label_values: Tuple[object, ...], /) -> Any:
    """The dict's value for these label values. None if there is none, or if a label value is not a str."""

def own_methods(type: type, /) -> None:
    """Gives a class its own descriptors of the native methods that it inherits: calls of them are faster."""

def read_values(group: str = ..., name: str = ..., /) -> Tuple[Tuple[int, str, str, str, Tuple[float, ...], Tuple[Any, ...]], ...]:
    """Kind, group, name, help, bounds and series of each family. A series: labels, and a number, None or (sum, buckets)."""

def read_value(group: str, name: str, labels: Sequence[Tuple[str, str]], /) -> Optional[float]: ...
def event_count(type: str, name: str, /) -> int: ...
def set_callback_period(seconds: float, /) -> None: ...
def end_functions() -> None:
    """In the main interpreter, ends all functions for ever. Waits for a running one, at most a second."""

def set_step(step: SupportsIndex, /) -> None:
    """The step that the process trains now, as the program numbers it."""

def count_steps(count: SupportsIndex = 1, /) -> None:
    """The process has done this many more steps of training."""

def count_samples(count: SupportsIndex, /) -> None:
    """The process has trained on this many more samples."""

def count_tokens(count: SupportsIndex, /) -> None:
    """The process has trained on this many more tokens."""

def set_total_steps(steps: SupportsIndex, /) -> None:
    """The training ends with this step, as the program numbers steps."""

def leave_out_marks(thread_alone: bool, /) -> None:
    """From now on, no mark is entered in this process and those that it forks; or in the calling thread, which must be in none."""

def count_event(name: object, type: object, timestamp: object, /) -> bool: ...
def keep_event(name: object, type: object, metadata: Dict[Any, Any], timestamp: object, /) -> None: ...
