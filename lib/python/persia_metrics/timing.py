"""The results of `time()`, `track_inprogress()` and `count_exceptions()`: context managers that are also decorators."""

from __future__ import annotations

import functools
import time
from types import TracebackType
from typing import Any, AsyncGenerator, Callable, Generator, Optional, Tuple, Type, TypeVar, Union

_F = TypeVar("_F", bound=Callable[..., Any])
ExceptionTypes = Union[Type[BaseException], Tuple[Type[BaseException], ...]]


class ContextDecorator:
    """Makes a context manager a decorator. Each call gets its own, so that calls may overlap and nest.

    A call is in the context while it works: a coroutine until it returns, a generator (also an asynchronous one) from its first step
    until it ends or is closed. Decorated functions stay of their kind.
    """

    def __call__(self, function: _F) -> _F:
        return decorate(function, self._for_call)

    def _for_call(self) -> Any:
        return self

    def _pause(self) -> None:
        """A generator has yielded a value."""

    def _resume(self) -> None:
        """The generator goes on."""


def _is_any(test: Callable[[Any], bool], function: Callable[..., Any]) -> bool:
    # The method of a callable object decides; a function has itself, and partials are looked through.
    return test(function) or test(getattr(type(function), "__call__", None))


def lasts_longer(function: Callable[..., Any]) -> bool:
    """Whether a call only makes what does the work: a coroutine, or a generator of either kind."""
    import inspect  # only here: its import takes long

    kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    return any(_is_any(kind, function) for kind in kinds)


def decorate(function: _F, for_call: Callable[[], Any]) -> _F:
    """Runs each call of a function in the ContextDecorator that `for_call` returns."""
    import inspect

    decorated: Callable[..., Any]
    if _is_any(inspect.iscoroutinefunction, function):

        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            with for_call():
                return await function(*args, **kwargs)

        decorated = coroutine

    elif _is_any(inspect.isgeneratorfunction, function):

        def generator(*args: Any, **kwargs: Any) -> Any:
            call = for_call()
            with call:
                return (yield from _running(function(*args, **kwargs), call))

        decorated = generator

    elif _is_any(inspect.isasyncgenfunction, function):

        async def async_generator(*args: Any, **kwargs: Any) -> Any:
            call = for_call()
            with call:
                inner: AsyncGenerator[Any, Any] = function(*args, **kwargs)
                step: Callable[[Any], Any] = inner.asend
                argument: Any = None
                while True:
                    try:
                        value = await step(argument)
                    except StopAsyncIteration:
                        return
                    call._pause()
                    try:
                        argument = yield value
                    except GeneratorExit:
                        call._resume()
                        await inner.aclose()
                        raise
                    except BaseException as error:
                        call._resume()
                        step, argument = inner.athrow, error
                    else:
                        call._resume()
                        step = inner.asend

        decorated = async_generator
    else:

        def plain(*args: Any, **kwargs: Any) -> Any:
            with for_call():
                return function(*args, **kwargs)

        decorated = plain

    return functools.wraps(function)(decorated)  # type: ignore[return-value]


def _running(generator: Generator[Any, Any, Any], call: Any) -> Generator[Any, Any, Any]:
    """`yield from generator`, with the context paused while the generator waits."""
    step: Callable[[Any], Any] = generator.send
    argument: Any = None
    while True:
        try:
            value = step(argument)
        except StopIteration as end:
            return end.value
        call._pause()
        try:
            argument = yield value
        except GeneratorExit:
            call._resume()
            generator.close()
            raise
        except BaseException as error:
            call._resume()
            step, argument = generator.throw, error
        else:
            call._resume()
            step = generator.send


class Timer(ContextDecorator):
    """Calls a metric's method with the duration of a block or a call, in seconds of the monotonic clock.

    A block that an exception leaves is measured, too, unless its labels are not chosen yet. The duration of a coroutine includes what it awaits;
    that of a generator excludes the time in which its caller uses the values. In `with`, each thread needs its own object. A decorated function may
    be called by any thread.
    """

    def __init__(self, metric: Any, method: str) -> None:
        self._metric = metric
        self._method = method
        self._start = 0.0

    def _for_call(self) -> Timer:
        return Timer(self._metric, self._method)

    def labels(self, *values: object, **named: object) -> None:
        """Chooses the series inside the block, for labels that are known only at its end. ValueError: as the metric's `labels`."""
        self._metric = self._metric.labels(*values, **named)

    def __enter__(self) -> Timer:
        self._start = time.perf_counter()
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        try:
            getattr(self._metric, self._method)(time.perf_counter() - self._start)
        except ValueError:  # the labels are not chosen
            if error is None:
                raise

    def _pause(self) -> None:
        self._paused = time.perf_counter()

    def _resume(self) -> None:
        self._start += time.perf_counter() - self._paused


class InprogressTracker(ContextDecorator):
    """Adds one to a gauge during a block or a call."""

    def __init__(self, gauge: Any) -> None:
        self._gauge = gauge

    def __enter__(self) -> None:
        self._gauge.inc()

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        self._gauge.dec()


class ExceptionCounter(ContextDecorator):
    """Counts the exceptions of given types that leave a block or a call, and does not suppress them."""

    def __init__(self, counter: Any, exception: ExceptionTypes) -> None:
        self._counter = counter
        self._exception = exception

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        if isinstance(error, self._exception):
            self._counter.inc()
