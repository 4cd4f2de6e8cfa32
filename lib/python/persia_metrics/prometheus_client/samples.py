"""What a collector returns for each series: samples, with the names and fields of prometheus_client.samples."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional, Union


class Timestamp:
    """A Unix time in seconds and nanoseconds. ValueError: the nanoseconds are not below a second."""

    def __init__(self, sec: float, nsec: float) -> None:
        if not 0 <= nsec < 1e9:
            raise ValueError(f"nanoseconds must be from 0 to 999999999, not {nsec}")
        self.sec: int = int(sec)
        self.nsec: int = int(-nsec if sec < 0 else nsec)

    def __str__(self) -> str:
        return f"{self.sec}.{self.nsec:09d}"

    def __repr__(self) -> str:
        return f"Timestamp({self.sec}, {self.nsec})"

    def __float__(self) -> float:
        return float(self.sec) + float(self.nsec) / 1e9

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and (self.sec, self.nsec) == (other.sec, other.nsec)

    def __hash__(self) -> int:
        return hash((self.sec, self.nsec))

    def __lt__(self, other: Timestamp) -> bool:
        return (self.sec, self.nsec) < (other.sec, other.nsec)

    def __gt__(self, other: Timestamp) -> bool:
        return (self.sec, self.nsec) > (other.sec, other.nsec)


class Exemplar(NamedTuple):
    """An example of the observations of a counter or a bucket."""

    labels: Dict[str, str]
    """A trace's id, for example."""
    value: float
    """The observation."""
    timestamp: Optional[Union[float, Timestamp]] = None
    """Its Unix time."""


class Sample(NamedTuple):
    """One line of an exposition."""

    name: str
    """With the suffix, `_bucket` for example."""
    labels: Dict[str, str]
    """All labels, also `le` and `quantile`."""
    value: float
    """The number."""
    timestamp: Optional[Union[float, Timestamp]] = None
    """Its Unix time, if the collector has one."""
    exemplar: Optional[Exemplar] = None
    """An example, if there is one."""
    native_histogram: Any = None
    """Not used: accepted since newer releases of prometheus_client have it."""
