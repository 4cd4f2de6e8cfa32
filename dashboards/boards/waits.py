"""Panels on who waits for whom: what the steps of the ranks consist of, and the rank that the others wait for. Of ranks that mark phases."""

from .grafana import chart, query, table
from .promql import over, select

OF_STEP = "persia_rank_phase_seconds_per_step"
RANK = "job, instance, role"


def panels():
    """By the shipped recording rules, which compare the ranks of all agents of a job."""
    rank = "{{job}} {{instance}} {{role}}"
    straggler = over("max", RANK + ", phase", select("rank:straggler:seconds_per_step"))
    hang = over("max", RANK + ", phase", select("rank:hang:seconds"))
    waits = over("max", RANK, select(OF_STEP, 'phase="sync"'))
    parts = over("avg", "job, phase", select(OF_STEP))
    lost = "Seconds that the job loses in each step by the rank that the others wait for, and the phase in which it is longer than they are. Over all agents by the recording rules, and by each agent alone."
    awaited = "For how long the other ranks have been in sync, by the rank that they wait for and what it does. Over all agents by the recording rules, and by each agent alone."
    of_agent = {name: over("max", RANK + ", phase", select(name)) for name in ("persia_straggler", "persia_hang", "persia_rank_in_phase_seconds")}
    present = "What each rank does, and for how long."
    return [
        chart("Straggler", lost, "s", [query(straggler, rank + ": {{phase}}"), query(of_agent["persia_straggler"], rank + ": {{phase}}, on its host")], (12, 7)),
        chart("Hang: who is awaited", awaited, "s", [query(hang, rank + ": {{phase}}"), query(of_agent["persia_hang"], rank + ": {{phase}}, on its host")], (12, 7)),
        chart("Wait in each step", "Time in sync of each step. The rank that waits least is the one that the others wait for.", "s", [query(waits, rank)], (12, 8)),
        chart("Time of a step by phase", "Mean of the ranks.", "s", [query(parts, "{{job}} {{phase}}")], (12, 8)),
        table("Ranks now", present, "s", {"since": of_agent["persia_rank_in_phase_seconds"]}, size=(24, 7)),
    ]
