"""The board of one job: its state, who waits for whom, its own metrics, speed, goodput and GPUs. Readable with hundreds of ranks."""

from . import jobs
from .grafana import chart, linked, links_of_cells, override, query, repeated, stat, table, texts_of_values, variable
from .panels import band_chart, worst_chart
from .promql import ENDED, RANK, RANK_LEGEND, RATE, increase, over, rate, select, total_rate, unless_ended

UID = "persia-job"
TITLE = "Job"
DESCRIPTION = (
    "One training job: state, who waits for whom, loss and its own metrics, speed, goodput, GPUs. "
    "Source: the job's own metrics and those of persia-metrics-agent, through a PushGateway, by scraping or by remote write."
)
ABOUT = """What the ranks count by the library (`persia_progress_*`, `persia_phase_*`, their own metrics) or `exec --instrument=torch` counts for them, and \
what `persia-metrics-agent` makes of it. A chart shows the lowest, the median and the highest rank, or only the ranks that are worst. Who waits for whom and \
goodput need ranks that mark phases. The variable *Metric* chooses among the job's own metrics. One rank: {rank}. Its host: {machine}."""
LINKS = {"rank": "persia-rank", "machine": "persia-machine"}

# What the agent, torchelastic, Benchmark AI and the Persia tables have boards for.
OTHERS = "(persia|torchelastic|benchmarkai|push|scrape|ALERTS|up|process|python)(_.*)?"
OWN = '__name__=~"$own_metric"'
VARIABLES = [
    variable(
        "own_metric", "Metric", "__name__", f'{{__name__!~"{OTHERS}|.+:.+", job=~"$job", instance=~"$instance"}}', with_all=False, regex="/^(.+?)(?:_bucket)?$/"
    )
]
OF_STEP = "persia_rank_phase_seconds_per_step"


def state():
    """With the exit code, and the causes of the deaths of the run: these are no rates, since a job may have ended at its first death."""
    code = query(over("max", "job", jobs.of_last_run("persia_exec_exit_code")), "exit code")
    causes = query(over("sum", "job, cause", jobs.of_last_run("persia_worker_deaths_total")) + " > 0", "deaths: {{cause}}")
    about = "The worst that is true; the exit code of the command under exec; how many processes of the run have died, by cause. " + jobs.STATES_ABOUT
    texts = override("state", mappings=texts_of_values(jobs.STATES))
    return stat("State", about, "none", query(jobs.state(), "state"), more=[code, causes], overrides=[texts])


def overview():
    use = unless_ended(over("avg", "job", jobs.gpu_use()))
    few = unless_ended(jobs.goodput("job", "$__range"))
    poor = [(None, "orange"), (0.5, "yellow"), (0.8, "green")]
    return [
        state(),
        stat("Ranks", "Processes that run.", "short", query(jobs.ranks(), "ranks")),
        stat("Step", "The highest step of a rank.", "none", query(jobs.step(), "step")),
        stat("Time left", "Until the last step of the rank that ends last, at its present rate.", "s", query(jobs.time_left(), "left")),
        stat(
            "Goodput in the time range", "Share of the ranks' time in steps that were kept. Ranks must mark phases.", "percentunit", query(few, "goodput"), poor
        ),
        stat("GPU use", "Share of the time in which a kernel ran, mean of the job's devices.", "percentunit", query(use, "mean")),
    ]


def _in_phase(name):
    return over("max", RANK + ", phase", select(name))


def _by_rule_and_agent(rule, metric):
    """Of the shipped recording rule, which compares the ranks of all agents of a job, and of each agent alone."""
    return {"": _in_phase(rule), "on its host": _in_phase(metric)}


def waits():
    in_phase = RANK_LEGEND + ": {{phase}}"
    both = "Over all agents by the recording rules, and by each agent alone."
    still = [
        query(over("min", "job", select("persia_job_unchanged_seconds")), "whole job without change"),
        query(over("max", "job", select("persia_job_hang_after_seconds")), "hangs after"),
    ]
    awaited = (
        "For how long the others have been in sync, by the rank that they wait for and what it does; and for how long no metric of the job has changed. " + both
    )
    lost = "Seconds that the job loses in each step by the rank that the others wait for, and its phase. " + both
    least = "Time in sync of each step: the rank that waits least is the one that the others wait for."
    sync = over("max", RANK, select(OF_STEP, 'phase="sync"'))
    charts = [
        worst_chart("Straggler", lost, "s", _by_rule_and_agent("rank:straggler:seconds_per_step", "persia_straggler"), in_phase),
        worst_chart("Hang", awaited, "s", _by_rule_and_agent("rank:hang:seconds", "persia_hang"), in_phase, still),
        worst_chart("Shortest waits", least, "s", sync, RANK_LEGEND, lowest=True, summary="avg"),
    ]
    return [*(linked(panel, "persia-rank", "Rank") for panel in charts), dead_and_hung()]


def dead_and_hung():
    process = RANK + ", process"
    error = 'reason=~"exit_[1-9].*|SIG(KILL|ABRT|SEGV|BUS|FPE|ILL|SYS)", reason!~"exit_(130|143)"'  # as in PersiaJobFailed
    failed = f"3 * {select('persia_process_last_exit_info', error)} and on (job) {ENDED}"
    code = over("max", process, f"({failed}) or 2 * {select('persia_process_died')} > 0 or {select('persia_process_hung')} > 0")
    some = f"topk by (job) (20, {code})"
    reason = f"{over('max', process + ', reason', select('persia_process_last_exit_info'))} and on ({process}) {some}"
    texts = {3: ("failed", "red"), 2: ("died", "red"), 1: ("hung", "orange")}
    overrides = [
        override("state", mappings=texts_of_values(texts), custom__cellOptions={"type": "color-text"}),
        override("instance", links=links_of_cells("persia-rank", "The rank", instance="instance")),
    ]
    about = (
        "At most 20: processes that died and have no replacement, or whose metrics do not change any more while others do. Of a job that has ended, those that "
        "ended with an error. reason: exit code or signal."
    )
    columns = [("state", some), (None, reason)]
    return table("Dead, hung and failed ranks", about, "none", columns, {"job": None}, (24, 6), ["instance", "role", "process", "state", "reason"], "state", overrides)


def own_metrics():
    loss = select("", '__name__=~"(?i).*loss.*"', '__name__!~"persia_.+|.+_(bucket|sum|count|total)|.+:.+"')
    by_name = {"highest": "max by (job, __name__)", "median": "quantile by (job, __name__)", "lowest": "min by (job, __name__)"}
    losses = [query(f"{how} ({'0.5, ' * ('quantile' in how)}{loss})", "{{__name__}} " + words) for words, how in by_name.items()]
    losses.append(query(over("count", "job, gauge", select("persia_gauge_nan_series")), "ranks on which {{gauge}} is NaN"))
    grows = '__name__=~".+_(total|sum|count)"'
    value = select("", OWN, '__name__!~".+_(total|sum|count)"')
    per_second = query(over("sum", "job", rate("", OWN, grows)), "per second, of all ranks")
    mean = [over("sum", "job", rate("", '__name__=~"${own_metric}_%s"' % part)) for part in ("sum", "count")]
    more = [per_second, query(" / ".join(mean), "mean of the histogram")]
    about = "A gauge; or a counter's rate; or a histogram's mean."
    return [
        chart("Loss", "Gauges with loss in their name: highest, median and lowest of the ranks; and the number of ranks on which a gauge of any name is NaN.", "short", losses, (12, 8), signed=True),
        repeated(band_chart("$own_metric", about, "short", value, more, (12, 8), signed=True), "own_metric", 2),
    ]


def speed():
    amounts = [query(total_rate("job", f"persia_progress_{what}_total"), what) for what in ("samples", "tokens")]
    parts = over("avg", "job, phase", select(OF_STEP))
    return [
        band_chart("Steps per second", "Of the ranks.", "ops", jobs.steps_of_ranks()),
        chart("Samples and tokens", "Per second, of all ranks together.", "short", amounts),
        chart("Time of a step by phase", "Mean of the ranks.", "s", [query(parts, "{{phase}}")], stacked=True),
    ]


def goodput():
    share = "Share of the ranks' time in steps that were kept: now, and over the run so far. Ranks must mark phases."
    what = "How many ranks are in each bucket, on average, with those that have left. A rank that is down, or repeats steps after a restart, makes no progress."
    again = "Processes that died, by cause, and processes that replaced an ended one. The agent's page says why each died."
    deaths = over("sum", "job, cause", increase("persia_worker_deaths_total", range=RATE))
    replaced = over("sum", "job", increase("persia_process_restarts_total", range=RATE))
    return [
        chart("Goodput", share, "percentunit", [query(jobs.goodput("job"), "now"), query(jobs.goodput_so_far(), "so far")], max=1),
        chart("Ranks by what they do", what, "short", [query(total_rate("job, bucket", "persia_goodput_seconds_total"), "{{bucket}}")], stacked=True),
        chart("Deaths and restarts", again, "short", [query(deaths, "{{cause}}"), query(replaced, "restarts")]),
    ]


def gpus():
    use = band_chart(
        "GPU utilisation",
        "Share of the time in which a kernel ran. The rank whose GPU waits is not the slowest one.",
        "percentunit",
        jobs.gpu_use(),
        size=(24, 7),
        max=1,
    )
    return [linked(use, "persia-gpu", "GPUs")]


def rows():
    return {
        "Overview": overview(),
        "Who waits for whom": waits(),
        "The job's own metrics": own_metrics(),
        "Speed": speed(),
        "Goodput": goodput(),
        "GPUs": gpus(),
    }
