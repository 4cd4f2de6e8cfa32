"""The agent reads the same from the segments as these tests: values, and refusals by reason."""

import errno
import re
import subprocess

import pytest
from cases import AGENT, BOTH, INJECT, environment, run_all, scenario

# The values that the agent adds up over processes, by key.
_SUMS = {
    "faults/steps_total": "faults_steps_total",
    "faults/sizes:count": "faults_sizes_count",
    "faults/sizes:sum": "faults_sizes_sum",
    "faults/cost:count": "faults_cost_count",
    "faults/cost:sum": "faults_cost_sum",
    "faults/threads{number=1}": 'faults_threads{number="1"}',
    "faults/threads{number=2}": 'faults_threads{number="2"}',
    "faults/only_in_child": "faults_only_in_child",
    "faults/filler_9": "faults_filler_9",
    "faults/after_main": "faults_after_main",
    "faults/c_histogram:sum": "faults_c_histogram_sum",
    "faults/saved:events": 'persia_events_total{event="saved",type="faults"}',
}
_IDENTITY = ("job", "instance", "ip_addr", "role", "zone")


def _scrape(directory):
    """The agent's current series: value by name and own labels."""
    command = [AGENT, "once", "--job=faults", f"--metrics-dir={directory}"]
    body = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60, check=True).stdout
    values = {}
    for name, labels, value in re.findall(r"^(\w+)(?:\{(.*)\})? (\S+)$", body, re.M):
        own = sorted(pair for pair in re.findall(r'(\w+)="([^"]*)"', labels) if pair[0] not in _IDENTITY)
        values[name + ("{" + ",".join(f'{label}="{text}"' for label, text in own) + "}" if own else "")] = float(value)
    return values


def test_values(way, result):
    (outcome,) = run_all([scenario("nothing fails", way, stdout=result, complete=BOTH, look=_scrape)])
    counted = outcome.counted().values()
    for key, name in _SUMS.items():
        assert outcome.seen[name] == sum(process.get(key, 0) for process in counted), name


# The last allocations of files are for series of the scenario's end.
@pytest.mark.parametrize(
    ("function", "share", "error"), [("posix_fallocate", 1, "ENOSPC"), ("open", 1, "EMFILE"), ("open", 1, "EACCES"), ("malloc", 0.8, "ENOMEM")]
)
def test_refusals(way, result, calls, function, share, error):
    fault = f"{function}:{int(calls[function] * share)}+:{getattr(errno, error)}"
    env = {"LD_PRELOAD": str(INJECT), "FAULTS": fault}
    (outcome,) = run_all([scenario(fault, way, env=env, stdout=result, look=_scrape)])
    refused = {}
    for segment in outcome.segments.values():
        for reason, count in segment.dropped.items():
            refused[reason] = refused.get(reason, 0) + count
    assert refused, "nothing was refused"
    exposed = {reason: outcome.seen.get(f'persia_metrics_dropped_total{{reason="{reason.replace(" ", "_")}"}}') for reason in refused}
    assert exposed == refused
