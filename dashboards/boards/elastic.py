"""The board of torchelastic's metrics, under the names of the bundled rules."""

from .grafana import chart, heatmap, query, stat
from .panels import PERCENTILES, times_chart, worst_chart
from .promql import RANK, RANK_LEGEND, RATE, increase, mean, mean_so_far, or_zero, over, quantile_so_far, rate, select, total_rate, unless_ended

UID = "persia-elastic"
TITLE = "Elastic job"
DESCRIPTION = (
    "Rendezvous, steps, results and restarts of a job that torchrun started, as torchelastic counts them. "
    "Source: the group torchelastic, named by the bundled rules of persia-metrics-agent, through a PushGateway, by scraping or by remote write."
)
ABOUT = """Torchelastic's metrics in group `torchelastic`, under the names of the bundled rules of `persia-metrics-agent` (`config/mapping.yaml`). Another \
`mapping_file` gives other names. Hangs, stragglers, goodput and speed of the same job: {job}. Processes of one rank: {rank}.

**If a job is slow**: does every rank train (step rate against the median)? Does it train most of the time (time in rendezvous)? Are the steps long, or the \
time between them? Rates show a failure or a run from its second occurrence on, since Prometheus sees no increase from a series that did not exist; the \
marks on the charts show it immediately."""
LINKS = {"job": "persia-job", "rank": "persia-rank"}
VARIABLES = []

STEP = "torchelastic_train_step_duration_seconds"
RESULTS = "torchelastic_worker_group_run_results_total"


def _flakiness():
    return or_zero(over("max", "job", select("torchelastic_worker_group_flakiness_ratio")))


def overview():
    training = over("sum", "job", total_rate(RANK, STEP + "_count") + " > bool 0")
    speed = "quantile by (job) (0.5, " + total_rate(RANK, STEP + "_count") + ")"
    restarts = over("sum", "job", increase("persia_process_restarts_total"))
    left = unless_ended(over("min", "job", select("torchelastic_worker_group_remaining_restarts")))
    failed = or_zero(over("sum", "job", increase("torchelastic_rendezvous_total", 'result="failure"')))
    few = [(None, "orange"), (1, "yellow"), (2, "green")]
    # The launcher writes it when the run ends: a warning would come after the fact, and stay.
    neutral, any_yellow = [(None, "text")], [(None, "green"), (0.5, "yellow")]
    return [
        stat("Ranks that train", "Ranks that completed a step recently.", "short", query(training, "ranks")),
        stat("Train steps", "Steps per second of the median rank, by torchelastic's train loop.", "ops", query(speed, "median")),
        stat("Restarts", "Processes that replaced an ended one, in the time range.", "short", query(restarts, "restarts"), any_yellow, decimals=0),
        stat("Restarts left", "Restarts before the run fails, of the worker group with the fewest.", "short", query(left, "left"), few),
        stat("Flakiness", "Share of its restarts that the last run used; 100 % if it failed.", "percentunit", query(_flakiness(), "flakiness"), neutral),
        stat("Failed rendezvous", "In the time range; each rank counts its own.", "short", query(failed, "failed"), any_yellow, decimals=0),
    ]


def results(title, description, name, by, legend):
    """Successes and failures in the window of a point; 0 failures if there were successes only."""

    def ended(result):
        return over("sum", by, increase(name, f'result="{result}"', range=RATE))

    failures = f"{ended('failure')} or 0 * {ended('success')}"
    queries = [query(ended("success"), f"{legend} success".strip()), query(failures, f"{legend} failure".strip())]
    return chart(title, description, "short", queries)


def times_so_far(title, description, name):
    """Over the whole run: for durations that are too rare for rates."""
    queries = [query(mean_so_far(name, "job"), "mean")]
    queries += [query(quantile_so_far(q, name, "job"), text) for text, q in PERCENTILES.items()]
    return chart(title, description + " Over the run so far.", "s", queries)


def runs():
    left = over("min", "job, role", select("torchelastic_worker_group_remaining_restarts"))
    meetings = "Rendezvous that ended, by result; each rank counts its own."
    ended = "Runs of worker groups that ended, by result. A run counts when it ends; the last one's result is also in the flakiness."
    calls = "Calls of functions under @prof, by result."
    found = total_rate("job, role, state", "torchelastic_worker_group_state_observations_total")
    per_second = over("sum", "job", rate("torchelastic_worker_group_runs_total"))
    return [
        results("Rendezvous", meetings, "torchelastic_rendezvous_total", "job", ""),
        results("Runs that ended", ended, RESULTS, "job, role", "{{role}}"),
        results("Function calls", calls, "torchelastic_function_calls_total", "job, function", "{{function}}"),
        chart("Restarts left by role", "At 0, the next failure ends the run.", "short", [query(left, "{{role}}")]),
        chart("Worker group states", "Observations per second of a worker group's state by its launcher.", "cps", [query(found, "{{role}} {{state}}")]),
        chart("Runs per second", "Runs of worker groups that ended.", "cps", [query(per_second, "runs")]),
    ]


def rendezvous():
    meeting = total_rate(RANK, "torchelastic_outer_train_loop_duration_seconds_sum")
    share = "Share of time that a rank spends in rendezvous and does not train."
    return [
        times_so_far("Rendezvous time", "Duration of a rendezvous, with the wait for other ranks.", "torchelastic_rendezvous_duration_seconds"),
        times_so_far("State sync time", "Time until all ranks had the state of the most advanced one.", "torchelastic_state_sync_duration_seconds"),
        worst_chart("Time in rendezvous", share, "percentunit", meeting, RANK_LEGEND, summary="avg"),
    ]


def steps():
    inner, write = "torchelastic_inner_train_loop_duration_seconds", "torchelastic_checkpoint_write_latency_seconds"
    speed = total_rate(RANK, STEP + "_count")
    against = f"{speed} / on (job) group_left () quantile by (job) (0.5, {speed})"
    slowness = f"{mean(STEP, RANK)} / on (job) group_left () quantile by (job) (0.5, {mean(STEP, RANK)})"
    between = f"{mean(inner, RANK)} - {mean(STEP, RANK)}"
    called = total_rate("job, function", "torchelastic_function_entries_total")
    lag = [(None, "red"), (0.8, "yellow"), (0.95, "green")]
    slow = [(None, "green"), (1.1, "yellow"), (1.5, "red")]
    rest = "Mean of the inner loop without the step: checkpoints and communication."
    return [
        worst_chart(
            "Step rate against the median",
            "1 is the rate of the job's median rank.",
            "percentunit",
            against,
            RANK_LEGEND,
            lowest=True,
            summary="avg",
            size=(12, 8),
            thresholds=lag,
        ),
        worst_chart(
            "Step time against the median",
            "1 is the time of the job's median rank.",
            "percentunit",
            slowness,
            RANK_LEGEND,
            summary="avg",
            size=(12, 8),
            thresholds=slow,
        ),
        times_chart("Step time", "Duration of a step: computing gradients, and waiting for those of other ranks.", STEP, size=(12, 8)),
        heatmap("Step time, spread", "Steps per second by duration.", total_rate("le", STEP + "_bucket")),
        worst_chart("Time between steps", rest, "s", between, RANK_LEGEND, summary="avg"),
        times_so_far("Checkpoint write time", "Time to write a checkpoint to disk.", write),
        times_chart("Train loop, inner part", "A step, its checkpoint, and the check for new ranks after it.", inner),
        times_chart("Function time", "Calls of functions under @prof.", "torchelastic_function_duration_seconds", "job, function", "{{function}}", (12, 8)),
        chart("Function entries", "Calls started per second, if the program counts them.", "cps", [query(called, "{{function}}")], (12, 8)),
    ]


def rows():
    return {"Overview": overview(), "Runs and results": runs(), "Rendezvous": rendezvous(), "Steps, checkpoints and functions": steps()}
