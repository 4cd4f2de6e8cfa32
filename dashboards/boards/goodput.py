"""Where the time of the ranks goes: a row of the board of elastic jobs."""

from .grafana import chart, query, table
from .promql import RANK, RANK_LEGEND, RATE, increase, over, rate, select, total_rate

TIME = "persia_rank_seconds_total"


def goodput(by):
    """Of ranks that mark phases, which alone have this bucket: it is not known what the others do."""
    bucket = 'bucket="compute"'
    known = over("sum", by, f"{rate(TIME)} and ignoring (bucket) {rate(TIME, bucket)}")
    return f"{total_rate(by, TIME, bucket)} / {known}"


def panels():
    redone = over("sum", RANK, increase("persia_rank_redone_steps_total", range=RATE))
    restarts = over("sum", RANK, increase("persia_rank_restarts_total", range=RATE))
    repair = over("max", "job", select("persia_job_mean_time_to_repair_seconds"))
    so_far = over("avg", "job", select("persia_goodput_ratio"))
    totals = {"seconds": over("sum", "job, bucket", increase("persia_goodput_seconds_total"))}
    repairs = total_rate(RANK, "persia_rank_repair_seconds_total")
    share = "Share of the time of all ranks in which they computed steps that were kept. Ranks must mark phases. And over the run so far."
    ranks = "How many ranks are in each bucket, on average. A rank that is down, or repeats steps after a restart, makes no progress."
    rank_share = "As the first chart, by rank: a rank with less waits for data, for others, or was down."
    steps = "Steps that ranks trained again after a restart, since the last checkpoint is older than the failure."
    lost = "Share of a rank's time in down, starting and redone that belongs to its restarts."
    by_bucket = "Time of all ranks in the time range, also of those that have left."
    again = "Processes that replaced one of their rank that had failed."
    mean = "From the failure of a rank until its successor trains new steps. Mean of all restarts of the run."
    goodputs = [query(goodput("job"), "{{job}}"), query(so_far, "{{job}} so far")]
    return [
        chart("Goodput", share, "percentunit", goodputs, (12, 8), max=1),
        chart("Ranks by what they do", ranks, "short", [query(total_rate("job, bucket", TIME), "{{job}} {{bucket}}")], (12, 8)),
        chart("Goodput by rank", rank_share, "percentunit", [query(goodput(RANK), RANK_LEGEND)], (12, 8), max=1),
        chart("Repair by rank", lost, "percentunit", [query(repairs, RANK_LEGEND)], (12, 8), max=1),
        chart("Redone steps", steps, "short", [query(redone, RANK_LEGEND)], (6, 8)),
        chart("Restarts after failures", again, "short", [query(restarts, RANK_LEGEND)], (6, 8)),
        chart("Mean time to repair", mean, "s", [query(repair, "{{job}}")], (6, 8)),
        table("Time of all ranks", by_bucket, "s", totals, size=(6, 8)),
    ]
