"""All boards, and their common parts."""

from . import benchmark, elastic, exporter, training
from .grafana import annotation, board, link, text, variable
from .promql import select

BOARDS = [training, elastic, benchmark, exporter]

CHECKPOINT = '"(?i).*checkpoint.*"'


def _events(name, matcher, color, enable):
    expr = "1000 * " + select("persia_event_last_timestamp_seconds", matcher)
    return annotation(name, expr, "{{type}} {{event}}", "{{job}} {{instance}} {{role}}", "type,event", color, enable)


# A job may write a checkpoint every few minutes: those marks would cover the others.
EVENTS = [
    _events("Events", f"event!~{CHECKPOINT}", "purple", True),
    _events("Checkpoints", f"event=~{CHECKPOINT}", "blue", False),
]


def generate():
    """All dashboards, by uid."""
    return {module.UID: _generate(module) for module in BOARDS}


def _generate(module):
    job = variable("job", "Job", "job", module.LISTED_BY, with_all=False)
    instance = variable("instance", "Instance", "instance", module.LISTED_BY.replace("{", '{job=~"$job", ', 1))
    links = [link(other.UID, other.TITLE) for other in BOARDS if other is not module]
    about = text("Where this comes from", f"The sources of the board {module.TITLE}.", module.ABOUT)
    rows = {**module.rows(), "About this board": [about]}
    return board(module.UID, module.TITLE, module.DESCRIPTION, rows, [job, instance, *module.VARIABLES], EVENTS, links)
