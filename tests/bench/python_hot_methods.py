"""What a measurement costs from Python, by what it costs to call a C extension's method at all, in one run.

usage: /usr/bin/python3 tests/bench/python_hot_methods.py [BUILD_DIRECTORY]

Each hot method may cost twice a bare method call. prometheus_client stands beside them, in a process for each of its modes.
All are measured round by round, so that the machine's unrest meets all of them, and the quietest round of each counts; in
several processes, since what lies where in memory, by chance of a process, can cost a call twice its time.
"""

import json
import os
import subprocess
import sys
import tempfile
import timeit
from pathlib import Path

PROCESSES = 5
ROUNDS = 100
CALLS = 100  # in one statement, so that the loop around it does not count
NUMBER = 50  # short enough to fall between two interruptions
ALLOWED = 2.0
JUDGED = 8  # the first ones
PEER_ROUNDS = 20


def timer_of(call, names):
    """Gives the ns of a call each time it is called; warm, since the interpreter rewrites what runs often."""
    timer = timeit.Timer("\n".join([call] * CALLS), globals=names)
    timer.timeit(NUMBER)
    return lambda: timer.timeit(NUMBER) / NUMBER / CALLS * 1e9


def hot_methods():
    """(label, call, the bare call to compare it with), and the names in them."""
    import bare_method

    import persia_metrics
    from persia_metrics.benchmarkai import emit
    from persia_metrics.torchelastic import metrics

    names = {
        "emit": emit,
        "put_metric": metrics.put_metric,
        "stream": metrics.getStream("bench"),
        "bare": bare_method.Bare(),
        "counter": persia_metrics.Counter("batches", "Batches.", group="bench"),
        "gauge": persia_metrics.Gauge("loss", "Loss.", group="bench"),
        "histogram": persia_metrics.Histogram("seconds", "Seconds.", group="bench"),
        "child": persia_metrics.Counter("by_feature", "By feature.", ["feat"], group="bench").labels("user_id"),
    }
    calls = [
        ("Counter.inc()", "counter.inc()", "bare.call()"),
        ("Counter.inc(3)", "counter.inc(3)", "bare.call_with(3)"),
        ("Counter.inc(0.5)", "counter.inc(0.5)", "bare.call_with(0.5)"),
        ("labelled Counter.inc()", "child.inc()", "bare.call()"),
        ("Gauge.set(0.5)", "gauge.set(0.5)", "bare.call_with(0.5)"),
        ("Gauge.inc()", "gauge.inc()", "bare.call()"),
        ("Gauge.dec()", "gauge.dec()", "bare.call()"),
        ("Histogram.observe(0.3)", "histogram.observe(0.3)", "bare.call_with(0.3)"),
#From here on functions in Python, which are not judged.
        ("add_value('n', 0.3)", "stream.add_value('n', 0.3)", "bare.call_with(0.3)"),
        ("put_metric('n', 0.3)", "put_metric('n', 0.3)", "bare.call_with(0.3)"),
        ("emit({'n': 0.3}), segment", "emit({'n': 0.3})", "bare.call_with(0.3)"),
    ]
    return calls, names


def measure():
    """Prints (label, ns, ns of the bare call) for each hot method."""
    calls, names = hot_methods()
    timers = [(timer_of(call, names), timer_of(floor, names)) for _, call, floor in calls]
    rounds = [[(ours(), floor()) for ours, floor in timers] for _ in range(ROUNDS)]
    print(json.dumps([(label, *map(min, zip(*(pairs[i] for pairs in rounds)))) for i, (label, _, _) in enumerate(calls)]))


def measure_peer():
    """Prints ns of two methods. prometheus_client reads its mode when it is imported."""
    import prometheus_client

    registry = prometheus_client.CollectorRegistry()
    names = {
        "counter": prometheus_client.Counter("batches", "Batches.", registry=registry),
        "histogram": prometheus_client.Histogram("seconds", "Seconds.", registry=registry),
    }
    timers = [timer_of(call, names) for call in ("counter.inc()", "histogram.observe(0.3)")]
    print(json.dumps([min(timer() for _ in range(PEER_ROUNDS)) for timer in timers]))


def in_process(what, build, variable):
    """What a process of its own prints. Its directory of metrics is told by `variable`."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        path = f"{build / 'lib/python'}:{build / 'tests/bench'}"
        env = {**os.environ, "PYTHONPATH": path, "BENCHMARK_AI": "segment", **({
variable:
  directory} if variable else {})}
        answer = subprocess.run([sys.executable, __file__, what], env=env, check=True, capture_output=True, text=True)
    return json.loads(answer.stdout)


def main(build):
    processes = [in_process("--ours", build, "PERSIA_METRICS_DIR") for _ in range(PROCESSES)]
    results = [(lines[0][0], *(min(line[side] for line in lines) for side in (1, 2))) for lines in zip(*processes)]
    for label, ours, floor in results:
        print(f"{label:26} {ours:7.1f} ns, a bare call {floor:5.1f} ns: ratio {ours / floor:.2f}")
    bare = results[0][2]
    for mode, variable in (("single-process", ""), ("multiprocess", "PROMETHEUS_MULTIPROC_DIR")):
        counter, histogram = in_process("--peer", build, variable)
        print(
            f"prometheus_client, {mode}: Counter.inc() {counter:.0f} ns, Histogram.observe() {histogram:.0f} ns: "
            f"{counter / bare:.0f} and {histogram / bare:.0f} bare calls"
        )
    worst = max(ours / floor for _, ours, floor in results[:JUDGED])
    print(f"the worst ratio is {worst:.2f}, allowed {ALLOWED:.1f}")
    return 0 if worst <= ALLOWED else 1


if __name__ == "__main__":
    if sys.argv[1:] == ["--ours"]:
        measure()
    elif sys.argv[1:] == ["--peer"]:
        measure_peer()
    else:
        root = Path(__file__).resolve().parents[2]
        sys.exit(main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else root / "build/release"))
