"""All boards, and their common parts."""

from . import benchmark, elastic, exporter, training
from .grafana import annotation, board, link, text, variable
from .promql import select

BOARDS = [training, elastic, benchmark, exporter]

EVENTS = annotation(
    "Events",
    "1000 * " + select("persia_event_last_timestamp_seconds"),
    "{{event}}",
    "{{job}} {{instance}} {{role}}",
    "type,event",
    "purple",
)


def generate():
    """All dashboards, by uid."""
    return {module.UID: _generate(module) for module in BOARDS}


def _generate(module):
    job = variable("job", "Job", "job", module.LISTED_BY)
    instance = variable("instance", "Instance", "instance", module.LISTED_BY.replace("{", '{job=~"$job", ', 1))
    links = [link(other.UID, other.TITLE) for other in BOARDS if other is not module]
    about = text("Where this comes from", f"The sources of the board {module.TITLE}.", module.ABOUT)
    rows = {**module.rows(), "About this board": [about]}
    return board(module.UID, module.TITLE, module.DESCRIPTION, rows, [job, instance, *module.VARIABLES], [EVENTS], links)
