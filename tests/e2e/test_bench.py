"""The checks of `./run bench`: a missed limit is found, and --check reports it."""

import statistics
import subprocess
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests/bench"))

import bench_table  # noqa: E402
import demo_overhead  # noqa: E402
from bench_table import Demand, Row, least, median  # noqa: E402

RESULTS = {"ours": [3.0, 1.0, 2.0], "peer": [30.0, 10.0, 40.0]}


@pytest.mark.parametrize(
    "demand, judged_by, more_is_better, holds",
    [
        (Demand("at most", 2.0), median, False, True),
        (Demand("at most", 1.9), median, False, False),
        (Demand("at least", 2.0), median, True, True),
        (Demand("at least", 2.1), median, True, False),
        (Demand("share of", 0.07, "peer"), median, False, True),
        (Demand("share of", 0.06, "peer"), median, False, False),
        (Demand("times", 15, "peer"), median, False, True),
        (Demand("times", 15.1, "peer"), median, False, False),
        (Demand("times", 10, "peer"), least, False, True),
        (Demand("times", 10.1, "peer"), least, False, False),
        (Demand("times", 0.06, "peer"), median, True, True),
        (Demand("times", 0.07, "peer"), median, True, False),
    ],
)
def test_a_demand_is_held_to_its_limit(demand, judged_by, more_is_better, holds):
    row = Row("what", "ours", "ns", [demand], more_is_better=more_is_better, judged_by=judged_by)
    (verdict,) = bench_table.judge(row, RESULTS)
    assert verdict.holds == holds
    assert ("MISSED" in verdict.text("ns")) != holds


def test_one_of_several_demands_that_is_missed_is_missed():
    row = Row("what", "ours", "ns", [Demand("at most", 9), Demand("times", 16, "peer")])
    assert [verdict.holds for verdict in bench_table.judge(row, RESULTS)] == [True, False]


@pytest.mark.parametrize("count, quantile", [(15, 2.1448), (60, 2.0010)])
def test_the_interval_of_a_mean_is_students(count, quantile):
    values = [float(i) for i in range(count)]
    expected = quantile * statistics.stdev(values) / count**0.5
    assert demo_overhead.half_width(values) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    "kind, peer, limit, holds",
    [("times", "peer", 60, True), ("times", "peer", 61, False), ("share of", "alone", 1.21, True), ("share of", "alone", 1.19, False)],
)
def test_neighbours_hold_up_what_is_shared_and_what_is_not(kind, peer, limit, holds):
    """Two threads take 1.2 on one counter and 1.0 on a counter each, and one undisturbed thread takes 0.5: sharing costs 0.6."""
    results = {"ours": [0.7, 1.2, 1.9], "apart": [0.9, 1.0, 1.4], "alone": [0.5, 0.9, 1.1], "peer": [20.0, 36.3, 50.0]}
    row = Row("what", "ours", "ns", [Demand(kind, limit, peer, undisturbed=("alone", "apart"), peer_by=median if peer == "peer" else least)])
    (verdict,) = bench_table.judge(row, results)
    assert verdict.holds == holds
    assert set(row.names()) == {"ours", "apart", "alone"} | {peer}


CHECK = """
import sys
sys.path.insert(0, "tests/bench")
import importlib.util
spec = importlib.util.spec_from_file_location("bench_main", "tests/bench/__main__.py")
bench = importlib.util.module_from_spec(spec)
sys.argv = ["bench", "--check", "--filter", "start"]
spec.loader.exec_module(bench)
bench.rows.SUITES = {"start": lambda: [bench.rows.Row("a start", "start/ours", "ms", [bench.rows.at_most(float(LIMIT))])]}
sys.exit(bench.main())
"""


@pytest.mark.parametrize("limit, code, measured", [("0.000001", 1, 3), ("60000", 0, 1)])
def test_check_measures_again_and_then_fails(limit, code, measured):
    """Checks a worker's start, which is quick to measure, against limits of zero and of a minute."""
    answer = subprocess.run(
        [sys.executable, "-c", CHECK.replace("LIMIT", repr(limit))], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert answer.returncode == code, answer.stderr
    assert answer.stderr.count("measuring: agent_costs start") == measured
    assert ("bench: missed: a start" in answer.stderr) == (code == 1)


def test_an_unknown_row_is_an_error_that_quotes_it():
    answer = subprocess.run([sys.executable, "tests/bench", "--filter", "no such row"], cwd=ROOT, capture_output=True, text=True)
    assert answer.returncode == 1 and '"no such row"' in answer.stderr and "hot, python, torch, agent" in answer.stderr
