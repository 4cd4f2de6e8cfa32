"""Decorators measure the work of a call: of functions, coroutines, generators and asynchronous generators."""

import pytest

KINDS = """
import asyncio, functools, inspect, time
from persia_metrics import Counter, Gauge, Histogram, Stream, TimeCost

def spend(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass

async def aspend(seconds):
    await asyncio.sleep(seconds)

seconds = Histogram("g", "seconds", bounds=(0.02, 1.9))
calls = Gauge("g", "calls")
errors = Counter("g", "errors")

def function(fail=False):
    "Doc."
    spend(0.03)
    assert not inspecting or calls.value() == 1
    if fail:
        raise KeyError
    return 7

async def coroutine(fail=False):
    "Doc."
    await aspend(0.03)
    assert not inspecting or calls.value() == 1
    if fail:
        raise KeyError
    return 7

def generator(fail=False):
    "Doc."
    for i in range(3):
        spend(0.01)
        assert not inspecting or calls.value() == 1
        yield i
    if fail:
        raise KeyError
    return 7

async def async_generator(fail=False):
    "Doc."
    for i in range(3):
        await aspend(0.01)
        assert not inspecting or calls.value() == 1
        yield i
    if fail:
        raise KeyError

class Callable:
    async def __call__(self, fail=False):
        return await coroutine(fail)

def consume(made):
    "Does the work of what a call returned; the consumer takes 0.7 s between two values, which is not the callee's."
    if inspect.iscoroutine(made):
        return asyncio.run(made)
    if inspect.isgenerator(made):
        values = []
        for value in made:
            values.append(value)
            time.sleep(0.7)
        return values
    if inspect.isasyncgen(made):
        async def walk():
            values = []
            async for value in made:
                values.append(value)
                await aspend(0.7)
            return values
        return asyncio.run(walk())
    return made

inspecting = False
"""


@pytest.mark.parametrize("kind", ["function", "coroutine", "generator", "async_generator", "Callable()", "functools.partial(coroutine)"])
def test_the_work_is_timed_and_not_its_making(run_python, kind):
    run_python(
        KINDS
        + f"""
target = {kind}
timed = seconds.time()(calls.track_inprogress()(errors.count_exceptions(KeyError)(target)))
for kind in (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
    assert kind(timed) == (kind(target) or kind(getattr(target, "__call__", None))), kind
if hasattr(target, "__name__"):
    assert (timed.__name__, timed.__doc__) == (target.__name__, "Doc.")

made = timed()
assert made == 7 or seconds.value().count == 0, "its making was timed"
inspecting = True
assert consume(made) in (7, [0, 1, 2])
inspecting = False
value = seconds.value()
assert value.buckets[0] == 0 and value.buckets[1] == 1, value  # more than 20 ms, and without the consumer's 2.1 s
assert calls.value() in (0, None) and errors.value() == 0

try:
    consume(timed(fail=True))
except KeyError:
    pass
else:
    raise AssertionError("the error was suppressed")
assert (seconds.value().count, calls.value(), errors.value()) == (2, 0, 1)
"""
    )


def test_a_generator_keeps_its_conversation(run_python):
    run_python(
        KINDS
        + """
@seconds.time()
@calls.track_inprogress()
def talk():
    got = []
    try:
        while len(got) < 3:
            try:
                got.append((yield len(got)))
            except ValueError:
                got.append("error")
        return got
    finally:
        closed.append(True)

closed = []
talking = talk()
assert (next(talking), talking.send("a"), talking.throw(ValueError)) == (0, 1, 2)
try:
    talking.send("b")
except StopIteration as end:
    assert end.value == ["a", "error", "b"]
assert (closed, calls.value(), seconds.value().count) == ([True], 0, 1)

left = talk()
next(left)
assert calls.value() == 1
left.close()
assert (closed, calls.value(), seconds.value().count) == ([True, True], 0, 2)
del left

def outer():
    return (yield from talk())
whole = outer()
assert [next(whole), whole.send(1), whole.send(2)] == [0, 1, 2]
try:
    whole.send(3)
except StopIteration as end:
    assert end.value == [1, 2, 3]
"""
    )


def test_an_asynchronous_generator_keeps_its_conversation(run_python):
    run_python(
        KINDS
        + """
closed = []
@seconds.time()
@calls.track_inprogress()
async def talk():
    got = []
    try:
        while len(got) < 2:
            try:
                got.append((yield len(got)))
            except ValueError:
                got.append("error")
    finally:
        await asyncio.sleep(0)
        closed.append(got)

async def main():
    talking = talk()
    assert [await talking.asend(None), await talking.athrow(ValueError("x"))] == [0, 1]
    try:
        await talking.asend("b")
    except StopAsyncIteration:
        pass
    assert (closed, calls.value(), seconds.value().count) == ([["error", "b"]], 0, 1)
    left = talk()
    await left.asend(None)
    assert calls.value() == 1
    await left.aclose()
    assert (closed[1:], calls.value(), seconds.value().count) == ([[]], 0, 2)

    waiting = asyncio.ensure_future(seconds.time()(coroutine)())
    await asyncio.sleep(0)
    waiting.cancel()
    try:
        await waiting
    except asyncio.CancelledError:
        pass
    assert seconds.value().count == 3  # a call that is cancelled has ended
asyncio.run(main())
"""
    )


def test_calls_may_overlap(run_python):
    run_python(
        KINDS
        + """
@calls.track_inprogress()
@seconds.time()
async def step():
    await aspend(0.03)
    return calls.value()

async def main():
    return await asyncio.gather(*(step() for _ in range(20)))
assert asyncio.run(main())[0] == 20 and calls.value() == 0
value = seconds.value()
assert value.count == 20 and value.buckets[0] == 0 and value.sum < 20, value
"""
    )


def test_every_metric_with_a_duration(run_python):
    run_python(
        KINDS
        + """
cost, stream, last = TimeCost("g", "cost", bounds=(0.02,)), Stream("g", "stream"), Gauge("g", "last")
asyncio.run(cost.time()(stream.time()(last.time()(coroutine)))())
assert cost.value().buckets == (0, 1) and stream.value().last >= 0.02 and last.value() >= 0.02
"""
    )


def test_a_block_that_raises_before_its_labels_are_chosen_raises_its_own_error(run_python):
    told = run_python(
        """
from persia_metrics import Gauge, Histogram, Stream, TimeCost

def tell(metric, fails):
    try:
        with metric.time() as timer:
            if fails:
                raise KeyError("of the block")
            timer.labels("ok")
    except Exception as error:
        print(type(error).__name__, error)

for kind in (Gauge, Histogram, Stream, TimeCost):
    metric = kind("g", kind.__name__, "", ["status"])
    for fails in (True, False):
        tell(metric, fails)
    assert metric.labels("ok").value()
try:
    with metric.time():
        pass
except ValueError as error:
    print(error)
"""
    ).splitlines()
    assert told == [*4 * ["KeyError 'of the block'"], "<TimeCost g TimeCost> has label names: call labels() to get a series of it"]


def test_prof_times_the_work(run_python):
    run_python(
        KINDS
        + """
import persia_metrics.torchelastic.metrics as metrics
class Kept(metrics.MetricHandler):
    values = []
    def emit(self, data):
        self.values.append((data.name.split(".", 1)[1], data.value))
metrics.configure(Kept())
for kind in (function, coroutine, generator, async_generator):
    Kept.values.clear()
    profiled = metrics.prof(kind)
    assert (profiled.__name__, profiled.__doc__) == (kind.__name__, "Doc.")
    made = profiled()
    assert made == 7 or not Kept.values
    consume(made)
    (success, one), (duration, ms) = Kept.values
    assert (success, one, duration) == (f"{kind.__name__}.success", 1, f"{kind.__name__}.duration.ms"), Kept.values
    assert 20 <= ms < 20_000, ms
    Kept.values.clear()
    try:
        consume(profiled(fail=True))
    except KeyError:
        pass
    assert [name for name, _ in Kept.values] == [f"{kind.__name__}.failure", duration]
Kept.values.clear()
left = metrics.prof(generator)()
next(left)
left.close()
assert [name for name, _ in Kept.values] == ["generator.success", "generator.duration.ms"]
"""
    )
