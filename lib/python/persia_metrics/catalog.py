"""The Persia metric tables, as ready metrics: `catalog.index_miss_count().inc(missing)`.

The names are exactly PersiaML's. Their group is "persia", which adds no prefix to the exported name. Names, types, labels and help texts
come from the library, whose C++ header `catalog.h` is the only list of them. A function returns the metric of its name; a second call
returns the same series. A process exports only the metrics that it makes. A counter or a time cost starts at 0; a gauge is exported after
its first value. If the table names a label, call `labels()` to get a series.

Thread safety: any function, from any thread.
"""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Tuple, Type

from . import _native
from .instruments import Counter, Gauge, TimeCost

__all__ = [
    "ENTRIES",
    "GROUP",
    "Entry",
    "batch_unique_indices_rate",
    "estimated_distinct_id",
    "gradient_id_miss_count",
    "index_miss_count",
    "index_miss_ratio",
    "lookup_batched_time_cost",
    "lookup_create_requests_time_cost",
    "lookup_mixed_batch_time_cost",
    "lookup_rpc_time_cost",
    "nan_count",
    "nan_grad_skipped",
    "num_pending_batches",
    "staleness",
    "summation_time_cost",
    "update_gradient_time_cost",
]

GROUP: str = _native.CATALOG_GROUP
"""The group of all these metrics."""


class Entry(NamedTuple):
    """One metric of the tables."""

    name: str
    """The metric's name, without the group."""
    table: str
    """The table that has it: "accuracy" or "efficiency"."""
    type: str
    """"counter", "gauge" or "time_cost"."""
    unit: str
    """Its unit, in the plural; empty for a count."""
    label: str
    """Its label's name; empty if it has none."""
    help: str
    """One sentence: what is measured, and by which part of PersiaML."""


# The numbers of Table and Type in catalog.h.
_TABLES = ("accuracy", "efficiency")
_TYPES: Tuple[Tuple[str, Type[Any]], ...] = (("counter", Counter), ("gauge", Gauge), ("time_cost", TimeCost))

ENTRIES: Dict[str, Entry] = {
    name: Entry(name, _TABLES[table], _TYPES[kind][0], unit, label, text)
    for name, table, kind, unit, label, text in _native.CATALOG
}
"""All metrics by name, in the order of the tables."""


def _metric(name: str) -> Any:
    entry = ENTRIES[name]
    return dict(_TYPES)[entry.type](GROUP, name, entry.help, (entry.label,) if entry.label else (), unit=entry.unit)


def index_miss_count() -> Counter:
    """Embedding ids that a look-up asked for and the embedding server did not hold yet, counted by the server."""
    return _metric("index_miss_count")  # type: ignore[no-any-return]


def index_miss_ratio() -> Gauge:
    """Share of the last look-up's ids that the embedding server did not hold yet, 0 to 1."""
    return _metric("index_miss_ratio")  # type: ignore[no-any-return]


def gradient_id_miss_count() -> Counter:
    """Embedding ids whose gradient arrived when the embedding server no longer held them, counted by the server."""
    return _metric("gradient_id_miss_count")  # type: ignore[no-any-return]


def estimated_distinct_id() -> Gauge:
    """Estimated number of distinct ids of a feature that the embedding worker has seen since its start. By the label `feat`."""
    return _metric("estimated_distinct_id")  # type: ignore[no-any-return]


def batch_unique_indices_rate() -> Gauge:
    """Share of the ids of a feature in the embedding worker's last batch that remain after removing duplicates, 0 to 1.
    By the label `feat`."""
    return _metric("batch_unique_indices_rate")  # type: ignore[no-any-return]


def staleness() -> Gauge:
    """Batches whose embeddings were looked up and whose gradients have not come back yet, at the embedding worker."""
    return _metric("staleness")  # type: ignore[no-any-return]


def nan_count() -> Counter:
    """Values of a feature's gradients that were NaN or infinite, counted by the embedding worker. By the label `feat`."""
    return _metric("nan_count")  # type: ignore[no-any-return]


def nan_grad_skipped() -> Counter:
    """Gradients of a feature that the embedding worker did not apply because a value in them was NaN or infinite. By the label `feat`."""
    return _metric("nan_grad_skipped")  # type: ignore[no-any-return]


def lookup_mixed_batch_time_cost() -> TimeCost:
    """Time that an embedding server takes to look up one request's ids, which mix those of all features, in seconds."""
    return _metric("lookup_mixed_batch_time_cost")  # type: ignore[no-any-return]


def num_pending_batches() -> Gauge:
    """Batches that wait at the embedding worker for their look-up by a trainer."""
    return _metric("num_pending_batches")  # type: ignore[no-any-return]


def lookup_create_requests_time_cost() -> TimeCost:
    """Time that the embedding worker takes to remove duplicate ids and split a batch by server, in seconds."""
    return _metric("lookup_create_requests_time_cost")  # type: ignore[no-any-return]


def lookup_rpc_time_cost() -> TimeCost:
    """Time that the embedding worker waits for all embedding servers to answer one batch's look-up, in seconds."""
    return _metric("lookup_rpc_time_cost")  # type: ignore[no-any-return]


def update_gradient_time_cost() -> TimeCost:
    """Time from a batch's gradients reaching the embedding worker to all embedding servers having applied them, in seconds."""
    return _metric("update_gradient_time_cost")  # type: ignore[no-any-return]


def summation_time_cost() -> TimeCost:
    """Time that the embedding worker takes to sum the looked-up embeddings of each sample of a batch, in seconds."""
    return _metric("summation_time_cost")  # type: ignore[no-any-return]


def lookup_batched_time_cost() -> TimeCost:
    """Time that the embedding worker takes for one whole batch's look-up: requests, servers, and summation, in seconds."""
    return _metric("lookup_batched_time_cost")  # type: ignore[no-any-return]
