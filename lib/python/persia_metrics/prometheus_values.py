"""The values of prometheus_client's metrics, in this process's segment: what takes the place of `values.ValueClass`.

A value is a native object. `get()` returns what prometheus_client's own storage would return, also in a forked child, if metrics are
disabled, or if a segment has no more space. An argument that is no number raises TypeError; a metric that the library refuses raises nothing.

Thread safety: any function, from any thread.
"""

from __future__ import annotations

import importlib
import logging
import threading
from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

from . import _native
from .instruments import gauge_policies

_log = logging.getLogger("persia_metrics")
_told: Set[str] = set()

# The numbers of GaugeMerge in instruments.h. "all" is the default, which says nothing: as of our own gauges, the last value counts.
_MERGES = {"all": 0, "mostrecent": 0, "sum": 1, "min": 2, "max": 3, "liveall": 5}

# The cells of each histogram and summary that is being made, by their number, and its bounds so far.
_being_made: Dict[Tuple[int, str, Tuple[str, ...]], Tuple[Dict[int, Cell], List[float]]] = {}


def tell(text: str) -> None:
    """Logs a text once."""
    if text not in _told:
        _told.add(text)
        _log.warning("%s", text)


class Value:
    """A value of prometheus_client. Exemplars stay in the process."""

    __slots__ = ()

    def set_exemplar(self, exemplar: Any) -> None:
        setattr(self, "_exemplar", exemplar)  # a slot of the classes below

    def get_exemplar(self) -> Any:
        return getattr(self, "_exemplar", None)


class _Number(Value):
    __slots__ = ()

    def set(self, value: float, timestamp: Optional[float] = None) -> None:
        self.put(value)  # type: ignore[attr-defined]


class CounterValue(_Number, _native.ClientCounter):
    """The value of a counter."""

    __slots__ = ("_exemplar",)
    add = _native.ClientCounter.inc


class LastGaugeValue(_Number, _native.ClientGauge):
    """The value of a gauge with a mode "mostrecent", which prometheus_client does not let a program increment."""

    __slots__ = ("_exemplar",)


class GaugeValue(LastGaugeValue):
    """The value of any other gauge."""

    __slots__ = ()
    add = _native.ClientGauge.inc


class Cell(Value):
    """The sum, the count or a bucket of a histogram or summary: one value of prometheus_client, and a part of one series of ours."""

    __slots__ = ("of", "_at", "_exemplar")
    of: _native.ClientDistribution

    def __init__(self, at: int) -> None:
        self._at = at

    def inc(self, amount: float) -> None:
        self.of.inc(self._at, amount)

    def set(self, value: float, timestamp: Optional[float] = None) -> None:
        self.of.put(self._at, value)

    def get(self) -> float:
        return self.of.get(self._at)


def stored(kind: Any, name: str, about: str, labels: Tuple[Tuple[str, str], ...], *more: Any) -> Any:
    """Makes an object of the native module, for a series without a group: prometheus_client's names are complete."""
    try:
        return kind("", name, about, "", labels, *more)
    except Exception as error:
        tell(f"{name} is not exported: {type(error).__name__}: {error}")
        return kind("", "", "", "", None, *more)  # a value without a series


def _cell(name: str, sample: str, label_names: Tuple[str, ...], label_values: Tuple[str, ...], about: str) -> Cell:
    """One value of a histogram or summary. They come one by one; with the last one, the series is made."""
    bucket = sample == name + "_bucket"
    values = label_values[:-1] if bucket else label_values
    key = threading.get_ident(), name, values
    at = 0 if sample == name + "_sum" else 1
    if key not in _being_made or not bucket and at in _being_made[key][0]:  # of one whose constructor raised
        _being_made[key] = {}, []
    cells, bounds = _being_made[key]
    if bucket:
        at += len(bounds)
        if label_values[-1] != "+Inf":
            bounds.append(float(label_values[-1]))
    made = cells[at] = Cell(at)
    if len(cells) == len(bounds) + 2:
        del _being_made[key]
        series = stored(_native.ClientDistribution, name, about, tuple(zip(label_names, values)), tuple(bounds))
        for cell in cells.values():
            cell.of = series
    return made


def value_class(
    typ: str, metric_name: str, name: str, labelnames: Iterable[str], labelvalues: Iterable[str], help_text: str,
    multiprocess_mode: str = "", **more: Any,
) -> Any:
    """Takes the place of `values.ValueClass`."""
    if typ in ("histogram", "summary"):
        return _cell(metric_name, name, tuple(labelnames), tuple(labelvalues), help_text)
    labels = tuple(zip(labelnames, labelvalues))
    if typ == "counter":
        return stored(CounterValue, name, help_text, labels)
    if typ == "gauge":
        mode = multiprocess_mode if multiprocess_mode in _MERGES else multiprocess_mode[len("live") :]
        merge = _MERGES.get(mode, 0)
        gauge_policies.setdefault(("", name), merge)
        return stored(LastGaugeValue if mode == "mostrecent" else GaugeValue, name, help_text, labels, merge)
    return importlib.import_module("prometheus_client.values").MutexValue(typ, metric_name, name, labelnames, labelvalues, help_text, **more)
