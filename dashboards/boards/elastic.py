"""The board of elastic jobs: torchelastic's metrics under the names of the bundled rules, and the agent's metrics of the ranks."""

from . import goodput, gpu, machine, waits
from .grafana import chart, heatmap, query, stat, states, table
from .progress import progress
from .promql import RANK, RANK_LEGEND, age, increase, mean, or_zero, over, quantile, rate, select, since_change, total_rate, unless_ended
from .promql import mean_so_far, quantile_so_far

UID = "persia-elastic"
TITLE = "Elastic job"
DESCRIPTION = (
    "Rendezvous, steps, failures and restarts of an elastic training job, and which rank hangs or lags. "
    "Source: the group torchelastic, named by the agent's bundled rules, and persia_process_* of persia-metrics-agent, through a PushGateway."
)
ABOUT = """Torchelastic's metrics in group `torchelastic`, under the names of the agent's bundled rules (`config/mapping.yaml`), and \
the metrics of `persia-metrics-agent` about the processes (`persia_process_*`). Progress is what the ranks count by the library (`persia_progress_*`), \
and what `exec --instrument=torch` counts. Another `mapping_file` gives other names.

**If a job is slow**: does every rank train (step rate against the median)? Does it train most of the time (time in rendezvous)? Are the steps long, \
or the time between them? All ranks of a round wait for the slowest, which is busy while the others wait: see processor time. \
Rates show a failure or a run from its second occurrence on, since Prometheus sees no increase from a series that did not exist; \
the marks on the charts show it immediately."""
LISTED_BY = '{__name__=~"torchelastic_(rendezvous|worker_group|train_step).+"}'
VARIABLES = []

PROCESS_LEGEND = "{{job}} {{instance}} {{role}} {{process}}"
STEP = "torchelastic_train_step_duration_seconds"
RESULTS = "torchelastic_worker_group_run_results_total"
WINDOW = "$__rate_interval"
PERCENTILES = ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))


def stats():
    training = over("sum", "job", total_rate(RANK, STEP + "_count") + " > bool 0")
    speed = "quantile by (job) (0.5, " + total_rate(RANK, STEP + "_count") + ")"
    restarts = over("sum", "job", increase("persia_process_restarts_total"))
    left = unless_ended(over("min", "job", select("torchelastic_worker_group_remaining_restarts")))
    hung = unless_ended(over("sum", "job", select("persia_process_hung")))
    dead = unless_ended(or_zero(over("sum", "job", select("persia_process_died"))))
    flaky = or_zero(over("max", "job", select("torchelastic_worker_group_flakiness_ratio")))
    unchanged = or_zero(over("max", "job", since_change()))
    few, any_red = [(None, "orange"), (1, "yellow"), (2, "green")], [(None, "green"), (1, "red")]
    # The launcher writes it when the run ends: a warning would come after the fact, and stay.
    neutral, restarted = [(None, "text")], [(None, "green"), (0.5, "yellow")]
    return [
        stat("Ranks that train", "Ranks that completed a step recently.", "short", query(training, "{{job}}")),
        stat("Steps", "Steps per second of the median rank.", "ops", query(speed, "{{job}}")),
        stat("Restarts", "Processes that replaced an ended one, in the time range.", "short", query(restarts, "{{job}}"), restarted, decimals=0),
        stat("Restarts left", "Restarts before the run fails, of the worker group with the fewest.", "short", query(left, "{{job}}"), few),
        stat("Flakiness", "Share of its restarts that the last run used; 100 % if it failed.", "percentunit", query(flaky, "{{job}}"), neutral),
        stat("Longest without change", "Longest time since a metric of a running process changed.", "s", query(unchanged, "{{job}}")),
        stat("Hung ranks", "Processes that are up and whose metrics do not change any more, while others do.", "short", query(hung, "{{job}}"), any_red),
        stat("Dead ranks", "Processes that did not end by a clean exit, and have no replacement.", "short", query(dead, "{{job}}"), any_red),
    ]


def results(title, description, name, by, legend):
    """Successes and failures in the window of a point; 0 failures if there were successes only."""

    def ended(result):
        return over("sum", by, increase(name, f'result="{result}"', range=WINDOW))

    failures = f"{ended('failure')} or 0 * {ended('success')}"
    queries = [query(ended("success"), legend + " success"), query(failures, legend + " failure")]
    return chart(title, description, "short", queries)


def times(title, description, name, by="job", legend="{{job}}", size=(8, 8)):
    queries = [query(mean(name, by), legend + " mean")]
    queries += [query(quantile(q, name, by), f"{legend} {text}") for q, text in PERCENTILES]
    return chart(title, description, "s", queries, size)


def times_so_far(title, description, name):
    """Over the whole run: for durations that are too rare for rates."""
    queries = [query(mean_so_far(name, "job"), "{{job}} mean")]
    queries += [query(quantile_so_far(q, name, "job"), "{{job}} " + text) for q, text in PERCENTILES]
    return chart(title, description + " Over the run so far.", "s", queries)


def successes_and_failures():
    restarts = over("sum", RANK, increase("persia_process_restarts_total", range=WINDOW))
    left = over("min", "job, role", select("torchelastic_worker_group_remaining_restarts"))
    flaky = or_zero(over("max", "job", select("torchelastic_worker_group_flakiness_ratio")))
    meetings = "Rendezvous that ended, by result; each rank counts its own."
    runs = "Runs of worker groups that ended, by result. A run counts when it ends; the last one's result is also in the flakiness."
    calls = "Calls of functions under @prof, by result."
    return [
        results("Rendezvous", meetings, "torchelastic_rendezvous_total", "job", "{{job}}"),
        results("Runs that ended", runs, RESULTS, "job, role", "{{job}} {{role}}"),
        results("Function calls", calls, "torchelastic_function_calls_total", "job, function", "{{job}} {{function}}"),
        chart("Restarts", "Processes that replaced an ended one, by rank.", "short", [query(restarts, RANK_LEGEND)]),
        chart("Restarts left", "At 0, the next failure ends the run.", "short", [query(left, "{{job}} {{role}}")]),
        chart("Flakiness", "Share of its restarts that the last run used; 1 if it failed; 0 before it ended.", "percentunit", [query(flaky, "{{job}}")], max=1),
    ]


def rendezvous():
    meeting = total_rate(RANK, "torchelastic_outer_train_loop_duration_seconds_sum")
    duration = "torchelastic_rendezvous_duration_seconds"
    return [
        times_so_far("Rendezvous time", "Duration of a rendezvous, with the wait for other ranks.", duration),
        times_so_far("State sync time", "Time until all ranks had the state of the most advanced one.", "torchelastic_state_sync_duration_seconds"),
        chart("Time in rendezvous", "Share of time that a rank spends in rendezvous and does not train.", "percentunit", [query(meeting, RANK_LEGEND)]),
    ]


def steps():
    inner, write = "torchelastic_inner_train_loop_duration_seconds", "torchelastic_checkpoint_write_latency_seconds"
    between = f"{mean(inner, RANK)} - {mean(STEP, RANK)}"
    spread = total_rate("le", STEP + "_bucket")
    runs = over("sum", "job", rate("torchelastic_worker_group_runs_total"))
    called = total_rate("job, function", "torchelastic_function_entries_total")
    functions = ("job, function", "{{job}} {{function}}")
    return [
        times("Step time", "Duration of a step: computing gradients, and waiting for those of other ranks.", STEP, size=(12, 8)),
        heatmap("Step time, spread", "Steps per second by duration.", spread),
        chart("Time between steps", "Mean of the inner loop without the step: checkpoints and communication.", "s", [query(between, RANK_LEGEND)]),
        times_so_far("Checkpoint write time", "Time to write a checkpoint to disk.", write),
        times("Train loop, inner part", "A step, its checkpoint, and the check for new ranks after it.", inner),
        times("Function time", "Calls of functions under @prof.", "torchelastic_function_duration_seconds", *functions),
        chart("Function entries", "Calls started per second, if the program counts them.", "cps", [query(called, functions[1])]),
        chart("Runs per second", "Runs of worker groups that ended.", "cps", [query(runs, "{{job}}")]),
    ]


def workers():
    found = total_rate("job, role, state", "torchelastic_worker_group_state_observations_total")
    meaning = {1: ("up", "green"), 2: ("hung", "orange"), 0: ("ended", "blue"), -1: ("died", "red")}
    up, hung, died = (select(f"persia_process_{what}") for what in ("up", "hung", "died"))
    state = f"{up} + {hung} or {up} - {died} or {up}"
    exits = over("sum", "job, reason", increase("persia_process_exits_total", range=WINDOW))
    deaths = over("sum", "job, cause", increase("persia_worker_deaths_total", range=WINDOW))
    process = RANK + ", process"
    now = {"unchanged for": since_change(), "up": select("persia_process_up"), "restarts": increase("persia_process_restarts_total")}
    now = {column: over("max", process, expression) for column, expression in now.items()}
    ended = {"seen": over("max", process + ", reason", select("persia_process_last_exit_info"))}
    return [
        states("Processes", "Whether each process of each rank is up, hangs, ended or died.", query(state, PROCESS_LEGEND), meaning),
        chart("Worker group states", "Observations per second of a worker group's state by its launcher.", "cps", [query(found, "{{job}} {{role}} {{state}}")], (12, 8)),
        table("Processes now", "Seconds since the last change, whether it is up, and restarts in the time range.", "none", now, size=(12, 8)),
        table("How the last processes ended", "Exit code or signal of the last process of each number.", "none", ended, size=(6, 8)),
        chart("Exits", "Processes that ended, by exit code or signal.", "short", [query(exits, "{{job}} {{reason}}")], (6, 8)),
        chart("Deaths", "Processes that died, by cause; the agent's page says why each did.", "short", [query(deaths, "{{job}} {{cause}}")], (24, 6)),
    ]


def hangs_and_stragglers():
    speed = total_rate(RANK, STEP + "_count")
    against = f"{speed} / on (job) group_left () quantile by (job) (0.5, {speed})"
    slowness = f"{mean(STEP, RANK)} / on (job) group_left () quantile by (job) (0.5, {mean(STEP, RANK)})"
    busy = total_rate(RANK, "persia_process_cpu_seconds_total")
    patience = over("max", "job", select("persia_job_hang_after_seconds"))
    job_hung = over("min", "job", select("persia_job_hung"))
    standstill = over("min", "job", select("persia_job_unchanged_seconds"))
    throughput = over("sum", "job, counter", select("persia_job_throughput"))
    uptime = over("max", RANK, age("persia_process_start_time_seconds"))
    lag = [(None, "red"), (0.8, "yellow"), (0.95, "green")]
    slow = [(None, "green"), (1.1, "yellow"), (1.5, "red")]
    unchanged = "Time since a metric of a process last changed, by rank. It grows for a rank that hangs, and not for the others."
    waits = "The rank that is busy while the others wait is the slowest."
    return [
        chart("Time since last change", unchanged, "s", [query(since_change(), PROCESS_LEGEND), query(patience, "{{job}} hangs after")], (12, 8)),
        chart("Step rate against the median", "1 is the rate of the job's median rank.", "percentunit", [query(against, RANK_LEGEND)], (12, 8), lag),
        chart("Step time against the median", "1 is the time of the job's median rank.", "percentunit", [query(slowness, RANK_LEGEND)], (8, 8), slow),
        chart("Processor time by rank", "Cores in use. " + waits, "short", [query(busy, RANK_LEGEND)]),
        chart("Job hung", "1: processes of the job are up, and none changes any more, on any host.", "short", [query(job_hung, "{{job}}")], (8, 5), max=1),
        chart("Time without any change", "Time since any metric of the job last changed, on any host.", "s", [query(standstill, "{{job}}")], (8, 5)),
        chart("Throughput", "Rate of the job's counter of steps, batches or samples, of all ranks.", "ops", [query(throughput, "{{job}} {{counter}}")], (8, 5)),
        chart("Age of processes", "Time since the rank's oldest process started. A restart resets it.", "s", [query(uptime, RANK_LEGEND)]),
    ]


def rows():
    return {
        "Overview": stats(),
        "Progress": progress(with_tokens=False),
        "Goodput": goodput.panels(),
        "Hangs and stragglers": hangs_and_stragglers(),
        "GPUs": gpu.panels(),
        "Who waits for whom": waits.panels(),
        "Successes and failures": successes_and_failures(),
        "Worker state": workers(),
        "Rendezvous": rendezvous(),
        "Steps, checkpoints and functions": steps(),
        **machine.rows(),
    }
