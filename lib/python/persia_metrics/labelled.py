"""What all instruments have in common: names that are checked, and families, whose `labels()` returns their series."""

from __future__ import annotations

import functools
from types import FunctionType
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Tuple, Type, TypeVar

from . import _native

_Self = TypeVar("_Self", bound="Labelled")

# A family that has more series asks whether a new one counts before it keeps it: with label values without end, the segment is full at some time.
_KEPT_UNASKED = 10_000


# What other libraries, above all prometheus_client, call an argument.
_ELSEWHERE = {
    "buckets": "bounds",
    "documentation": "help",
    "labelnames": "label_names",
    "multiprocess_mode": "merge",
    "namespace": "group",
    "subsystem": "group",
}


def _naming_arguments(make: FunctionType) -> Callable[..., Any]:
    """`make`, which says of an argument of another library what it is called here."""
    code = make.__code__
    ours = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @functools.wraps(make)
    def new(cls: type, *args: Any, **named: Any) -> Any:
        for name in named:
            if name not in ours and _ELSEWHERE.get(name) in ours:
                raise TypeError(f"{cls.__name__}() has no argument {name!r}: here it is called {_ELSEWHERE[name]!r}")
        return make(cls, *args, **named)

    return new


class Labelled:
    """A metric with label names is a family; `labels()` returns its series."""

    __slots__ = ()

    # The constructor's arguments, for series and pickles.
    _arguments: Tuple[Any, ...]
    _label_names: Tuple[str, ...]
    _values: Optional[Tuple[str, ...]]
    _children: Optional[Dict[Tuple[object, ...], Any]]
    _handle: Any  # the native base class
    # Of each native metric that it consists of, what its name has after the metric's.
    _suffixes: Tuple[str, ...] = ("",)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _native.own_methods(cls)  # a call of an inherited native method takes 1.5 times as long
        if cls.__module__ == f"{__package__}.instruments" and "__new__" in cls.__dict__:
            setattr(cls, "__new__", staticmethod(_naming_arguments(cls.__dict__["__new__"].__func__)))

    def labels(self: _Self, *label_values: object, **labels: object) -> _Self:
        """Returns the series with these label values, given in the order of the names or by name. Creates it if it is new.

        In a hot loop keep the result, which saves the look-up. ValueError: the labels are not those of the metric.
        """
        children = self._children
        if children is not None and not labels:
            child = _native.find_series(children, label_values)
            if child is not None:
                return child  # type: ignore[no-any-return]
        return self._new_child(label_values, labels)

    def _new_child(self: _Self, values: Tuple[object, ...], named: Dict[str, object]) -> _Self:
        texts = self._texts(values, named)
        children = self._family_children()
        # Two threads may both create one; their handles are of the same series.
        child: Optional[_Self] = children.get(texts)
        if child is None:
            made = series_of(type(self), self._arguments, texts)
            child = children.setdefault(texts, made) if len(children) < _KEPT_UNASKED or self._counts(texts) else made
        return child

    def _counts(self, texts: Tuple[str, ...]) -> bool:
        """Whether the library has accepted a series that was made."""
        group, name = self._arguments[:2]
        return _native.has_series(group, name, tuple(zip(self._label_names, texts)))

    def remove(self, *label_values: object) -> None:
        """Removes the series with these label values, in the order of the names: it is not exported until it is created again.

        `labels()` creates it again; it then starts from 0 in this process. What the agent exports goes on from where it was, as after a
        restart of the process, since a counter must not fall. An object that has the series from before counts for it again then. If
        other processes of one job, role and replica have the series, the agent exports it until they remove it, too. KeyError: there is no
        such series. ValueError: the label values are not those of the metric.
        """
        texts = self._texts(label_values, {})
        child = self._family_children().pop(texts, None)
        if not self._remove_series(texts, child) and child is None:
            raise KeyError(label_values)

    def remove_by_labels(self, labels: Mapping[str, object]) -> None:
        """Removes all series that have these labels, of which some may be missing, as `remove`. ValueError: a label is not the metric's."""
        children = self._family_children()
        unknown = sorted(set(labels) - set(self._label_names))
        if unknown:
            raise ValueError(f"unknown label names: {unknown}")
        wanted = {self._label_names.index(name): str(value) for name, value in labels.items()}
        for texts in list(children):
            child = children.pop(texts, None) if all(texts[at] == value for at, value in wanted.items()) else None
            if child is not None:
                self._remove_series(texts, child)

    def clear(self) -> None:
        """Removes all series, as `remove`. ValueError: the metric has no label names."""
        self.remove_by_labels({})

    def _remove_series(self, texts: Tuple[object, ...], child: Any) -> bool:
        group, name = self._arguments[:2]
        labels = tuple(zip(self._label_names, map(str, texts)))
        return any([_native.remove_series(group, name + suffix, labels) for suffix in self._suffixes])

    def _family_children(self) -> Dict[Tuple[object, ...], Any]:
        if self._children is None:
            raise ValueError("this metric has no label names" if not self._label_names else "this series already has its labels")
        return self._children

    def _texts(self, values: Tuple[object, ...], named: Dict[str, object]) -> Tuple[str, ...]:
        self._family_children()
        if values and named:
            raise ValueError("give the label values by position or by name, not both")
        if named:
            if sorted(named) != sorted(self._label_names):
                raise ValueError(f"label names must be {sorted(self._label_names)}, not {sorted(named)}")
            values = tuple(named[name] for name in self._label_names)
        elif len(values) != len(self._label_names):
            raise ValueError(f"{len(self._label_names)} label values are needed ({', '.join(self._label_names)}), not {len(values)}")
        return tuple(map(str, values))

    def _series_only(self) -> None:
        if self._children is not None:
            raise ValueError(f"{self!r} has label names: call labels() to get a series of it")

    def __reduce__(self) -> Tuple[Callable[..., Any], Tuple[Any, ...]]:
        """A metric that is unpickled in another process is that process's series of the same name."""
        return _unpickle, (type(self), self._arguments, self._values)

    def __repr__(self) -> str:
        group, name = self._arguments[:2]
        labels = dict(zip(self._label_names, self._values or ()))
        return f"<{type(self).__name__} {group + ' ' if group else ''}{name}{labels or ''}>"


def series_of(kind: Type[_Self], arguments: Tuple[Any, ...], values: Optional[Tuple[str, ...]]) -> _Self:
    """Creates a family (label names, but `values` is None) or a series."""
    group, name, help_text, unit, label_names, *more = arguments
    family = bool(label_names) and values is None
    labels = None if family else tuple(zip(label_names, values or ()))
    made: _Self = kind._handle.__new__(kind, group, name, help_text, unit, labels, *more)
    made._arguments = arguments
    made._label_names = label_names
    made._values = values
    made._children = {} if family else None
    return made


def _unpickle(kind: Any, arguments: Tuple[Any, ...], values: Optional[Tuple[str, ...]]) -> Any:
    return series_of(kind, arguments, values)


def _is_help(group: str, text: str) -> bool:
    """Whether it is the help text of a metric `group`, as prometheus_client's second argument is: it reads as a sentence."""
    words = text.split()
    if len(words) < 2:
        return False
    begins = words[0].isalpha() and words[0].istitle() and words[1][0].islower()
    return text.endswith(".") or begins and (len(words) > 2 or words[0].lower() in group.lower().split("_"))


def checked_names(group: str, name: str, help_text: str, label_names: Iterable[str], unit: str) -> Tuple[str, str, str, str, Tuple[str, ...]]:
    for argument, text in (("group", group), ("name", name), ("help", help_text), ("unit", unit)):
        if not isinstance(text, str):
            raise TypeError(f"{argument} must be str, not {type(text).__name__}")
    if not help_text and _is_help(group, name):
        raise ValueError(f"{name!r} is a text, not a name: the arguments are (group, name, help, label_names)")
    if isinstance(label_names, str):
        raise TypeError(f"label_names must be an iterable of names, not the string {label_names!r}")
    names = tuple(label_names)
    for label in names:
        if not isinstance(label, str):
            raise TypeError(f"label_names must be str, not {type(label).__name__}")
        label.encode()  # a lone surrogate raises here, not at the first labels()
    if len(set(names)) != len(names):
        raise ValueError(f"label_names has a duplicate: {names}")
    return group, name, help_text, unit, names
