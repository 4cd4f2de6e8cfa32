"""The native module: the library's handles. Programs use persia_metrics instead."""

import os
from typing import Any, Dict, Optional, Sequence, SupportsFloat, SupportsIndex, Tuple, Union

__version__: str

_Number = Union[float, SupportsFloat, SupportsIndex]
_Labels = Optional[Sequence[Tuple[str, str]]]

class Counter:
    def __new__(cls, group: str, name: str, help: str, unit: str, labels: _Labels) -> Counter: ...
    def inc(self, amount: _Number = 1) -> None:
        """Adds `amount`. A negative or non-finite one is ignored and counted as dropped."""

class Gauge:
    def __new__(cls, group: str, name: str, help: str, unit: str, labels: _Labels, merge: int) -> Gauge: ...
    def inc(self, amount: _Number = 1) -> None:
        """Adds `amount`; a gauge that was never set starts at 0."""
    def dec(self, amount: _Number = 1) -> None:
        """Subtracts `amount`; a gauge that was never set starts at 0."""
    def set(self, value: _Number) -> None:
        """Sets the value to any float, including NaN and infinities."""

class Histogram:
    def __new__(
        cls, group: str, name: str, help: str, unit: str, labels: _Labels, bounds: Tuple[float, ...],
        native: Tuple[float, int, float, float] = ...,
    ) -> Histogram: ...
    def observe(self, amount: _Number) -> None:
        """Adds one observation. NaN is ignored and counted as dropped."""

class Stream:
    def __new__(cls, group: str, name: str) -> Stream: ...
    def add(self, value: _Number) -> None:
        """Records a value. NaN becomes the last value, but enters neither sums nor buckets."""

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

def find_series(series: Dict[Tuple[object, ...], Any], label_values: Tuple[object, ...], /) -> Any:
    """The dict's value for these label values. None if there is none, or if a label value is not a str."""

def own_methods(type: type, /) -> None:
    """Gives a class its own descriptors of the native methods that it inherits: calls of them are faster."""

def count_event(name: object, type: object, timestamp: object, /) -> bool: ...
def keep_event(name: object, type: object, metadata: Dict[Any, Any], timestamp: object, /) -> None: ...
