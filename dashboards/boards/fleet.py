"""The board of all jobs: a line for each."""

from . import jobs
from .grafana import links_of_cells, override, query, stat, table, texts_of_values, variable
from .panels import worst_chart
from .promql import CHOSEN, over, select

UID = "persia-fleet"
TITLE = "Jobs"
DESCRIPTION = (
    "All training jobs, a line for each: state, owner, step, speed, goodput, GPUs and the last alert. "
    "Source: persia_job_info and the other metrics of persia-metrics-agent, through a PushGateway, by scraping or by remote write."
)
ABOUT = """Each job with an agent is listed, by `persia_job_info` of `persia-metrics-agent`. The owner is the label `owner` or `team` \
of the agent's setting `labels`, for example `--label=team=vision`. States *no news* and *straggler* over several hosts need the recording rules, and the \
last alert needs the alerts, of `config/prometheus`. A click on a job leads to its board, at the same time. Agents and gateways: {exporter}."""
LINKS = {"exporter": "persia-exporter"}
VARIABLES = [variable("team", "Team", "team", jobs.LISTED, all_value=".*")]  # also jobs without the label


def _alerts():
    """When the alert of each job that was the last to begin, and has fired in the time range, began."""
    # Alerts of a whole job have no instance: this board's variable does not choose among them.
    about = 'alertname=~"Persia.+", job=~"$job"'
    began = f"max by (job, alertname) (last_over_time(ALERTS_FOR_STATE{{{about}}}[$__range]))"
    fired = f'last_over_time(ALERTS{{alertstate="firing", {about}}}[$__range])'
    # An alert about a gateway has the name of the gateways' scrape job.
    return f"time() - topk by (job) (1, {began} and on (job, alertname) {fired} and on (job) {jobs.last(jobs.LISTED)})"


def _number(how, expression):
    """A number over all jobs: 0 if none counts, and none if no job is seen, as while the gateway is away."""
    return f"{how}({expression}) or 0 * count({select(jobs.LISTED)})"


def overview():
    red = [(None, "green"), (1, "red")]
    firing = 'count(sum by (job, alertname) (ALERTS{alertname=~"Persia.+", alertstate="firing", job=~"$job", team=~"$team"})) or vector(0)'
    return [
        stat("Jobs that run", "With a straggler or a dead rank, too.", "short", query(_number("count", jobs.in_states(jobs.RUNNING)), "jobs")),
        stat(
            "Jobs with a problem",
            "They hang, have a dead or hung rank, or are not seen any more.",
            "short",
            query(_number("count", jobs.in_states(jobs.WITH_A_PROBLEM)), "jobs"),
            red,
        ),
        stat("GPUs in use", "Whole devices of all jobs that run.", "short", query(_number("sum", jobs.gpus()), "GPUs")),
        stat("GPU hours of all jobs", "In the time range.", "short", query(f"sum({jobs.gpu_hours()}) or vector(0)", "hours"), decimals=1),
        stat(
            "Goodput of the median job",
            "In the time range, of jobs that mark phases.",
            "percentunit",
            query(f"quantile(0.5, {jobs.goodput('job', '$__range')})", "median"),
        ),
        stat("Alerts that fire", "Of this project's alerts, by job and name.", "short", query(firing, "alerts"), [(None, "text")]),
    ]


def table_of_jobs():
    repair = over("max", "job", select("persia_job_mean_time_to_repair_seconds"))
    queries = [
        ("state", jobs.state()),
        (None, jobs.owner()),
        ("step", jobs.step()),
        ("of", jobs.planned_steps()),
        ("time left", jobs.time_left()),
        ("speed", jobs.speed()),
        ("goodput", jobs.goodput("job", "$__range")),
        ("repair", repair),
        ("ranks", jobs.ranks()),
        ("GPUs", jobs.gpus()),
        ("GPU hours", jobs.gpu_hours()),
        ("alert began", _alerts()),
    ]
    overrides = [
        override("job", links=links_of_cells("persia-job", "The job", job="job")),
        override("state", mappings=texts_of_values(jobs.STATES), custom__cellOptions={"type": "color-text"}),
        override("time left", unit="s"),
        override("speed", unit="ops"),
        override("goodput", unit="percentunit"),
        override("repair", unit="s"),
        override("GPU hours", decimals=1),
        override("alert began", unit="s"),
    ]
    about = (
        "The worst state first. " + jobs.STATES_ABOUT + " speed: steps per second of the median rank, of those that step; of a job that counts no steps, its own counter. "
        "repair: mean time from a failure until new steps. alert began: seconds ago."
    )
    order = ["job", "state", "owner", "step", "of", "time left", "speed", "goodput", "repair", "ranks", "GPUs", "GPU hours", "last alert", "alert began"]
    return table("All jobs", about, "short", queries, {"alertname": "last alert"}, (24, 14), order, "state", overrides)


def charts():
    return [
        worst_chart(
            "Jobs with the lowest goodput",
            "Share of the ranks' time in steps that were kept.",
            "percentunit",
            jobs.goodput("job"),
            "{{job}}",
            by="",
            lowest=True,
            summary="avg",
            size=(12, 8),
            max=1,
        ),
        worst_chart("Jobs with the most GPUs", "Whole devices.", "short", jobs.gpus(), "{{job}}", by="", size=(12, 8)),
    ]


def _of_team(panel):
    """The panel, of the teams that are chosen. The alerts of a job may be the platform's: they are those of its listed jobs."""
    targets = [{**target, "expr": target["expr"].replace(CHOSEN, CHOSEN + ', team=~"$team"')} for target in panel["targets"]]
    return {**panel, "targets": targets}


def rows():
    all_rows = {"Overview": overview(), "Jobs": [table_of_jobs()], "Over time": charts()}
    return {title: [_of_team(panel) for panel in panels] for title, panels in all_rows.items()}
