"""Two first uses of the library before a fork, in each order, while another thread forks."""

from collections import Counter

from cases import BOTH, DIRECTORY, LONG, PROGRAMS, Case, environment, run_all

_WAYS = {
    "c": ("forks_c/{}",),
    "instrument": ("forks_instrument/{}",),
    "stream": ("forks_stream/{}:count", "forks_stream/{}:sum", "forks_stream/{}:last"),
    "event": ("forks_event/{}:events",),
    "emit": ("benchmarkai/{}:count", "benchmarkai/{}:sum", "benchmarkai/{}:last"),
    "init": (),
    "handler": ("forks_stream/{}:count", "forks_stream/{}:sum", "forks_stream/{}:last", "forks_event/{}:events"),
}
_FORKS, _USES = 16, 64


def _expected(pair, metric):
    """The counts of a process that uses each of a pair once."""
    counts = Counter()
    for way in pair:
        for key in _WAYS[way]:
            counts[key.format(metric)] = 1 if key.endswith(":last") else counts[key.format(metric)] + 1
    return dict(counts)


def test_each_pair_of_first_uses():
    pairs = [(first, second) for first in _WAYS for second in _WAYS]
    cases = []
    for pair in pairs * (8 if LONG else 1):
        expected = {}
        for i in range(_USES):
            expected |= _expected(pair, f"use_{i}")
        env = environment(PERSIA_METRICS_DIR=DIRECTORY, PERSIA_METRICS_SEGMENT_BYTES=str(2 << 20))
        stdout = f"forks {_FORKS} uses {_USES // _FORKS}\n"
        command = [PROGRAMS / "fault_forks", *pair]
        cases.append(Case(f"{pair[0]} and {pair[1]}", command, env, stdout=stdout, complete=BOTH, expected={"parent": expected}))
    outcomes = run_all(cases)
    wrong = []
    for outcome in outcomes:
        pair = outcome.case.command[1:]
        parent = outcome.pids()["parent"]
        children = [segment.values for pid, segment in outcome.segments.items() if pid != parent]
        # A child exports its parent's metrics too, with its own values, which are 0.
        counted = [{key: value for key, value in values.items() if value != 0} for values in children]
        if counted != [_expected(pair, "in_child")] * _FORKS:
            wrong.append(f"{outcome.case.name}: {len(children)} of {_FORKS} children have a segment; they counted {counted}")
    assert not wrong, "\n".join(wrong)
