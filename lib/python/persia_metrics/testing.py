"""For unit tests of instrumentation: a scope in which a test sees only what it has counted itself.

    from persia_metrics.testing import Scope

    def test_a_batch_is_counted():
        with Scope() as scope:
            train_one_batch()
        assert scope.value("my_app", "batches") == 1
        assert scope.events("my_app", "checkpoint") == 0

The metrics are the program's own; nothing needs to be replaced or registered. Counts of earlier tests are subtracted. Gauges are as if
they were never set, and get their former values back at the end of the scope.

Tests in several processes (pytest-xdist) do not see each other. Tests in several threads of one process do: a scope also sees what other
threads count. If metrics are disabled (PERSIA_METRICS_ENABLED=0), a scope sees nothing.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, List, Mapping, Optional, Tuple, Type

from . import _native
from .instruments import gauge_policies
from .reading import Snapshot, Value, snapshot

__all__ = ["Scope"]

_GAUGE = 2


def _set_gauges() -> List[Tuple[Any, float]]:
    """The gauges that have a value, with it."""
    gauges: List[Tuple[Any, float]] = []
    for kind, group, name, text, _, series in _native.read_values():
        if kind == _GAUGE:
            policy = gauge_policies.get((group, name), 0)
            gauges += [(_native.Gauge(group, name, text, "", labels, policy), value) for labels, value in series if value is not None]
    return gauges


class Scope:
    """A context manager, in which `value` and `events` see only the counts since its beginning. After its end they see those until the end.

    Scopes may nest. In a forked child, make a new one.
    """

    def __init__(self) -> None:
        self._before = Snapshot(())
        self._after: Optional[Snapshot] = None
        self._gauges: List[Tuple[Any, float]] = []

    def __enter__(self) -> Scope:
        self._gauges = _set_gauges()
        for gauge, _ in self._gauges:
            gauge.unset()
        self._before = snapshot()
        self._after = None
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        self._after = self.snapshot()
        for gauge, _ in _set_gauges():
            gauge.unset()
        for gauge, value in self._gauges:
            gauge.set(value)

    def snapshot(self) -> Snapshot:
        """All series of the process, with the counts of this scope."""
        return snapshot().since(self._before) if self._after is None else self._after

    def value(self, group: str, name: str, labels: Optional[Mapping[str, object]] = None) -> Value:
        """What was counted in this scope: a number, or a HistogramValue. Of a stream, the last value, also from before the scope.

        None: no such series was ever made, or a gauge was not set in this scope.
        """
        return self.snapshot().value(group, name, labels)

    def events(self, type: str, name: str) -> int:
        """How often an event was recorded in this scope."""
        return self.snapshot().events(type, name)
