"""The cost of a measurement from Python, beside a bare method call of a C extension and beside prometheus_client.

All calls of one process are measured round by round, so that disturbances by other programs affect all of them. The fastest
round of each counts: an interpreter's call has a fixed duration, and any excess is a disturbance. There are several
processes, since the layout of memory differs between processes, and can double the duration of a call.
"""

import json
import subprocess
import sys
import tempfile
import timeit

PROCESSES = 5
ROUNDS = 60
CALLS = 100  # in one statement, so that the loop around it does not count
FEATURES = ("user_id", "item_id", "category", "brand")
NUMBER = 50  # short enough to fall between two interruptions


def varied(call, i):
    """The call number `i`, whose value and names are not those of the one before."""
    return call.format(value=0.003 + i / 37, feature=FEATURES[i % len(FEATURES)])


def timer_of(call, names):
    """Returns the ns of a call each time it is called; warm, since the interpreter specializes code that runs often."""
    timer = timeit.Timer("\n".join(varied(call, i) for i in range(CALLS)), globals=names)
    timer.timeit(NUMBER)
    return lambda: timer.timeit(NUMBER) / NUMBER / CALLS * 1e9


def ours():
    """{name: call}, and the values of the names in the calls."""
    import bare_method

    import persia_metrics
    from persia_metrics.benchmarkai import emit
    from persia_metrics.torchelastic import metrics

    names = {
        "emit": emit,
        "put_metric": metrics.put_metric,
        "stream": metrics.getStream("bench"),
        "bare": bare_method.Bare(),
        "counter": persia_metrics.Counter("bench", "batches", "Batches."),
        "gauge": persia_metrics.Gauge("bench", "loss", "Loss."),
        "histogram": persia_metrics.Histogram("bench", "seconds", "Seconds."),
        "child": persia_metrics.Counter("bench", "by_feature", "By feature.", ["feat"]).labels("user_id"),
        "family": persia_metrics.Counter("bench", "by_user", "By user.", ["user"]),
    }
    calls = {
        "python/bare/call": "bare.call()",
        "python/bare/call with": "bare.call_with({value})",
        "python/inc/ours": "counter.inc()",
        "python/inc 3/ours": "counter.inc(3)",
        "python/inc 0.5/ours": "counter.inc(0.5)",
        "python/labelled inc/ours": "child.inc()",
        "python/set/ours": "gauge.set({value})",
        "python/observe/ours": "histogram.observe({value})",
        "python/labels/ours": "family.labels('{feature}').inc()",
        "python/add_value/ours": "stream.add_value('{feature}', {value})",
        "python/put_metric/ours": "put_metric('{feature}', {value})",
        "python/emit/ours": "emit({{'{feature}': {value}}})",
    }
    return calls, names


def peer(mode):
    """The same of prometheus_client: with our hook, or in its own mode, which it reads when it is imported."""
    import prometheus_client

    if mode == "hook":
        import persia_metrics

        persia_metrics.prometheus_client.install()

    registry = prometheus_client.CollectorRegistry()
    names = {
        "counter": prometheus_client.Counter("batches", "Batches.", registry=registry),
        "gauge": prometheus_client.Gauge("loss", "Loss.", registry=registry),
        "histogram": prometheus_client.Histogram("seconds", "Seconds.", registry=registry),
        "summary": prometheus_client.Summary("sizes", "Sizes.", registry=registry),
        "family": prometheus_client.Counter("by_user", "By user.", ["user"], registry=registry),
    }
    calls = {
        f"python/inc/{mode}": "counter.inc()",
        f"python/set/{mode}": "gauge.set({value})",
        f"python/observe/{mode}": "histogram.observe({value})",
        f"python/observe of a summary/{mode}": "summary.observe({value})",
        f"python/labels/{mode}": "family.labels('{feature}').inc()",
    }
    return calls, names


def time_all(calls, names):
    """Prints {name: ns of the quietest round}."""
    timers = {name: timer_of(call, names) for name, call in calls.items()}
    rounds = [{name: timer() for name, timer in timers.items()} for _ in range(ROUNDS)]
    print(json.dumps({name: min(each[name] for each in rounds) for name in timers}))


def in_process(build, who, variable):
    """The measurements of a separate process. `variable` names its directory of metrics."""
    from jobs import clean_environment  # not for that process, which is this file, too

    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        path = f"{build / 'lib/python'}:{build / 'tests/bench'}"
        env = {**clean_environment(), "PYTHONPATH": path, "BENCHMARK_AI": "segment", **({variable: directory} if variable else {})}
        answer = subprocess.run(["/usr/bin/python3", __file__, who], env=env, check=True, capture_output=True, text=True)
    return json.loads(answer.stdout)


def measure(build):
    """ns by `python/inc/ours` and the like, a number a process."""
    results = {}
    for _ in range(PROCESSES):
        for who, variable in (
            ("ours", "PERSIA_METRICS_DIR"),
            ("prometheus_client", ""),
            ("prometheus_client multiprocess", "PROMETHEUS_MULTIPROC_DIR"),
            ("hook", "PERSIA_METRICS_DIR"),
        ):
            for name, ns in in_process(build, who, variable).items():
                results.setdefault(name, []).append(ns)
    return results


if __name__ == "__main__":
    time_all(*(ours() if sys.argv[1] == "ours" else peer(sys.argv[1])))
