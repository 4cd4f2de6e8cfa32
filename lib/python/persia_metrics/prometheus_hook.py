"""Puts the values of prometheus_client's metrics into this process's segment, from which the job's agent exports them.

prometheus_client asks `values.ValueClass` for the storage of each value; its own multiprocess mode replaces that class, and so does
`install`. What ValueClass does not tell is taken from a few methods: removed series, functions of gauges, infos and enums. The methods that
count are replaced by shorter ones, if they have the parameters that we know. Registries, expositions, servers and pushes stay as they are.

An error here never reaches the program: the metric is not exported, and one line says so.

Thread safety: any function, from any thread. `install` is called once, when prometheus_client has been imported.
"""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
from typing import Any, Callable, Dict, List

from . import _native
from .instruments import gauge_policies
from .prometheus_values import CounterValue, LastGaugeValue, Value, stored, tell, value_class

# Of a process, which the agent knows better, and of Python.
_LEFT_OUT = ("prometheus_client.process_collector", "prometheus_client.platform_collector", "prometheus_client.gc_collector")

_metrics: Any = None  # prometheus_client.metrics, once it is imported

# The methods that count: a call of prometheus_client's own takes several times as long. `add`, `put` and `of` are of our values only. What
# raises, of a family that has no value or for an argument that is no number, is left to prometheus_client's method.
_OTHERWISE = (AttributeError, TypeError)


def _counter_inc(original: Callable[..., None]) -> Callable[..., None]:
    def inc(self: Any, amount: float = 1, exemplar: Any = None) -> None:
        if exemplar is None and amount >= 0:
            try:
                return self._value.add(amount)  # type: ignore[no-any-return]
            except _OTHERWISE:
                pass
        original(self, amount, exemplar)

    return inc


def _gauge_inc(original: Callable[..., None]) -> Callable[..., None]:
    def inc(self: Any, amount: float = 1) -> None:
        try:
            self._value.add(amount)
        except _OTHERWISE:
            original(self, amount)

    return inc


def _gauge_dec(original: Callable[..., None]) -> Callable[..., None]:
    def dec(self: Any, amount: float = 1) -> None:
        try:
            self._value.add(-amount)
        except _OTHERWISE:
            original(self, amount)

    return dec


def _gauge_set(original: Callable[..., None]) -> Callable[..., None]:
    def set(self: Any, value: float) -> None:
        try:
            self._value.put(value)
        except _OTHERWISE:
            original(self, value)

    return set


def _summary_observe(original: Callable[..., None]) -> Callable[..., None]:
    def observe(self: Any, amount: float) -> None:
        try:
            self._sum.of.observe(amount)
        except _OTHERWISE:
            original(self, amount)

    return observe


def _histogram_observe(original: Callable[..., None]) -> Callable[..., None]:
    def observe(self: Any, amount: float, exemplar: Any = None) -> None:
        if exemplar is None:
            try:
                return self._sum.of.observe(amount)  # type: ignore[no-any-return]
            except _OTHERWISE:
                pass
        original(self, amount, exemplar)

    return observe


def _labels(original: Callable[..., Any]) -> Callable[..., Any]:
    def labels(self: Any, *labelvalues: Any, **labelkwargs: Any) -> Any:
        if not labelkwargs:
            try:
                child = _native.find_series(self._metrics, labelvalues)
            except _OTHERWISE:  # a metric without label names
                child = None
            if child is not None:
                return child
        return original(self, *labelvalues, **labelkwargs)

    return labels


# What ValueClass does not tell.


def _end_all(children: List[Any]) -> None:
    """The series are removed."""
    for child in children:
        state = vars(child)
        if "_persia" in state:
            state.pop("_persia")._remove()
        for value in (state.get("_value"), getattr(state.get("_sum"), "of", None)):
            if isinstance(value, (CounterValue, LastGaugeValue, _native.ClientDistribution)):
                value.detach()
                name = child._name + ("_total" if isinstance(child, _metrics.Counter) else "")
                _native.remove_series("", name, tuple(zip(child._labelnames, child._labelvalues)))


def _with_labels(family: Any, labels: Any) -> List[Any]:
    """The series that have these labels, of which some may be missing."""
    names = list(family._labelnames)
    if not labels or not set(labels) <= set(names):
        return []
    wanted = {names.index(name): str(value) for name, value in labels.items()}
    return [child for values, child in list(family._metrics.items()) if all(values[at] == value for at, value in wanted.items())]


_CHOSEN: Dict[str, Callable[..., List[Any]]] = {
    "remove": lambda family, *values: [child for child in [family._metrics.get(tuple(map(str, values)))] if child is not None],
    "remove_by_labels": _with_labels,
    "clear": lambda family: list(family._metrics.values()),
}


def _removing(original: Callable[..., None]) -> Callable[..., None]:
    """Before prometheus_client removes the series: one that another thread makes again afterwards is a new one."""
    chosen = _CHOSEN[original.__name__]

    def remove(self: Any, *args: Any, **kwargs: Any) -> None:
        if self._labelnames and not self._labelvalues:
            _quietly(self, lambda: _end_all(chosen(self, *args, **kwargs)))
        original(self, *args, **kwargs)

    return remove


def _quietly(metric: Any, call: Callable[[], Any]) -> None:
    try:
        call()
    except Exception as error:
        tell(f"{metric!r} is not exported as it is: {type(error).__name__}: {error}")


def _with_function(original: Callable[..., None]) -> Callable[..., None]:
    def set_function(self: Any, f: Callable[[], float]) -> None:
        original(self, f)
        _quietly(self, lambda: _export_function(self, f))

    return set_function


def _export_function(gauge: Any, function: Callable[[], float]) -> None:
    value = gauge._value
    if isinstance(value, LastGaugeValue):
        value.detach()  # other methods have no effect any more
        merge = gauge_policies.get(("", gauge._name), 0)
        labels = tuple(zip(gauge._labelnames, gauge._labelvalues))
        _native.Gauge("", gauge._name, gauge._documentation, "", labels, merge)._set_function(function)


def _export_text(metric: Any) -> None:
    """Of an info or enum, which has no value of ValueClass."""
    labels = tuple(zip(metric._labelnames, metric._labelvalues))
    if isinstance(metric, _metrics.Info):
        metric._persia = stored(_native.Info, metric._name + "_info", metric._documentation, labels)
    else:
        metric._persia = stored(_native.Enum, metric._name, metric._documentation, labels, tuple(metric._states))
    _show_text(metric)


def _show_text(metric: Any) -> None:
    value = metric._value
    metric._persia._set(tuple(value.items()) if isinstance(metric, _metrics.Info) else metric._states[value])


def _making_text(original: Callable[..., None]) -> Callable[..., None]:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if not self._is_parent():
            _quietly(self, lambda: _export_text(self))

    return __init__


def _changing_text(original: Callable[..., None]) -> Callable[..., None]:
    def change(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if "_persia" in vars(self):
            _quietly(self, lambda: _show_text(self))

    return change


def is_custom(collector: Any) -> bool:
    """Whether the hook does not reach what it collects, which the bridge then copies. Not the collectors of prometheus_client itself."""
    return not isinstance(collector, _metrics.MetricWrapperBase) and type(collector).__module__ not in _LEFT_OUT


def _registering(original: Callable[..., None]) -> Callable[..., None]:
    def register(self: Any, collector: Any) -> None:
        original(self, collector)
        if self is _metrics.REGISTRY and is_custom(collector):
            _quietly(collector, _copy_default_registry)

    return register


def _copy_default_registry() -> None:
    importlib.import_module("persia_metrics.bridge").copy_by_default(_metrics.REGISTRY)


# Metrics that were made before.


def adopt(registry: Any) -> None:
    """Moves the values of a registry's metrics into the segment. A count that another thread makes in this moment may be lost."""
    for metric in list(getattr(registry, "_collector_to_names", ())):
        if isinstance(metric, _metrics.MetricWrapperBase):
            for series in list(metric._metrics.values()) if metric._is_parent() else [metric]:
                _quietly(series, functools.partial(_adopt, series))


def _adopt(series: Any) -> None:
    before = dict(vars(series))
    if isinstance(series, (_metrics.Info, _metrics.Enum)):
        if "_persia" not in before:
            _export_text(series)
        return
    if any(map(_is_ours, before.values())):
        return
    # The values of a copy, since another thread may record meanwhile.
    fresh = copy.copy(series)
    fresh._metric_init()
    after = {name: value for name, value in vars(fresh).items() if _is_ours(value)}
    for name, value in after.items():
        for old, new in zip(_listed(before[name]), _listed(value)):
            new.set(old.get())
            new.set_exemplar(old.get_exemplar())
    vars(series).update(after)
    if "_child_samples" in before and after:  # a gauge with a function
        _export_function(series, lambda: float(next(iter(before["_child_samples"]())).value))


def _listed(value: Any) -> List[Any]:
    return value if isinstance(value, list) else [value]


def _is_ours(value: Any) -> bool:
    return any(isinstance(each, Value) for each in _listed(value))


_FASTER = (
    ("Counter", "inc", _counter_inc),
    ("Gauge", "inc", _gauge_inc),
    ("Gauge", "dec", _gauge_dec),
    ("Gauge", "set", _gauge_set),
    ("Summary", "observe", _summary_observe),
    ("Histogram", "observe", _histogram_observe),
    ("MetricWrapperBase", "labels", _labels),
)
_FURTHER = (
    ("MetricWrapperBase", "remove", _removing),
    ("MetricWrapperBase", "remove_by_labels", _removing),  # since 0.23
    ("MetricWrapperBase", "clear", _removing),
    ("Gauge", "set_function", _with_function),
    ("Info", "__init__", _making_text),
    ("Info", "info", _changing_text),
    ("Enum", "__init__", _making_text),
    ("Enum", "state", _changing_text),
    ("CollectorRegistry", "register", _registering),
)


def _parameters(function: Any) -> Any:
    code = function.__code__
    return code.co_varnames[: code.co_argcount], inspect.CO_VARKEYWORDS & code.co_flags


def install() -> bool:
    """Keeps the values of all metrics of prometheus_client in the segment from now on, also of those in its default registry.

    Returns whether it does; the reason why not is one log line. ImportError: there is no prometheus_client.
    """
    global _metrics
    _metrics = importlib.import_module("prometheus_client.metrics")
    values = _metrics.values
    if values.ValueClass is value_class:
        return True
    if values.ValueClass is not values.MutexValue:
        tell("prometheus_client's metrics are not exported: they have another storage already, for example by PROMETHEUS_MULTIPROC_DIR")
        return False
    values.ValueClass = value_class
    for owner, name, replacement in (*_FASTER, *_FURTHER):
        original: Any = getattr(getattr(_metrics, owner), name, None)
        ours = original and replacement(original)
        if ours and ((owner, name, replacement) in _FURTHER or _parameters(ours) == _parameters(original)):
            setattr(getattr(_metrics, owner), name, functools.wraps(original)(ours))
    adopt(_metrics.REGISTRY)
    if any(map(is_custom, list(_metrics.REGISTRY._collector_to_names))):
        _copy_default_registry()
    return True


def after_import(_: Any) -> None:
    """The start-up hook's call, after the import of prometheus_client."""
    install()
