"""Panels on who waits for whom: what the steps of the ranks consist of, and the rank that the others wait for. Of ranks that mark phases."""

from .grafana import chart, query, table
from .promql import RANK, RANK_LEGEND, over, select

OF_STEP = "persia_rank_phase_seconds_per_step"


def _in_phase(name):
    return over("max", RANK + ", phase", select(name))


def _by_rule_and_agent(rule, metric):
    """Of the shipped recording rule, which compares the ranks of all agents of a job, and of each agent alone."""
    in_phase = RANK_LEGEND + ": {{phase}}"
    return [query(_in_phase(rule), in_phase), query(_in_phase(metric), in_phase + ", on its host")]


def panels():
    waits = over("max", RANK, select(OF_STEP, 'phase="sync"'))
    parts = over("avg", "job, phase", select(OF_STEP))
    lost = (
        "Seconds that the job loses in each step by the rank that the others wait for, and the phase in which it is longer than they are. "
        "Over all agents by the recording rules, and by each agent alone."
    )
    awaited = (
        "For how long the other ranks have been in sync, by the rank that they wait for and what it does. "
        "Over all agents by the recording rules, and by each agent alone."
    )
    least = "Time in sync of each step. The rank that waits least is the one that the others wait for."
    present = {"since": _in_phase("persia_rank_in_phase_seconds")}
    return [
        chart("Straggler", lost, "s", _by_rule_and_agent("rank:straggler:seconds_per_step", "persia_straggler"), (12, 7)),
        chart("Hang: the rank that others wait for", awaited, "s", _by_rule_and_agent("rank:hang:seconds", "persia_hang"), (12, 7)),
        chart("Wait in each step", least, "s", [query(waits, RANK_LEGEND)], (12, 8)),
        chart("Time of a step by phase", "Mean of the ranks.", "s", [query(parts, "{{job}} {{phase}}")], (12, 8)),
        table("Ranks now", "What each rank does, and for how long.", "s", present, size=(24, 7)),
    ]
