"""All boards, and their common parts."""

from . import benchmark, elastic, exporter, fleet, gpu, job, machine, rank, training
from .grafana import annotation, board, link, link_in_text, row, text, variable
from .jobs import LISTED
from .promql import select

# From all jobs to one job to one rank, then what a job may use.
BOARDS = [fleet, job, rank, machine, gpu, elastic, training, benchmark, exporter]
# They compare jobs. Each row of the others is shown once for each job that is chosen, and has its name: the legends do not repeat it.
OF_ALL_JOBS = [fleet, benchmark, exporter]

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


def _rows(module):
    titles = {other.UID: other.TITLE for other in BOARDS}
    links = {name: link_in_text(uid, titles[uid]) for name, uid in module.LINKS.items()}
    about = text("Where this comes from", f"The sources of the board {module.TITLE}.", module.ABOUT.format(**links))
    for title, panels in module.rows().items():
        yield (row(title), panels) if module in OF_ALL_JOBS else (row(f"{title}: $job", "job"), panels)
    yield row("About this board"), [about]


def _generate(module):
    job = variable("job", "Job", "job", LISTED, with_all=module in OF_ALL_JOBS)
    # The rank board begins with one rank.
    instance = variable("instance", "Instance", "instance", LISTED + '{job=~"$job"}', with_all=module is not rank)
    links = [link(other.UID, other.TITLE) for other in BOARDS if other is not module]
    return board(module.UID, module.TITLE, module.DESCRIPTION, _rows(module), [job, instance, *module.VARIABLES], EVENTS, links)
