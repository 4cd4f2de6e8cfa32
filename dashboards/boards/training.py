"""The board of the Persia tables. Each metric's entry in the catalog decides its panels."""

import catalog
from .grafana import heatmap, query, stat
from .panels import times_chart, worst_chart
from .promql import RANK, RANK_LEGEND, increase, mean, or_zero, over, quantile, select, total_rate, unless_ended

UID = "persia-training"
TITLE = "Persia training"
DESCRIPTION = (
    "The two tables of PersiaML, accuracy and efficiency of a training job with embeddings. "
    "Source: the group persia of the Persia metrics library, pushed by persia-metrics-agent to a PushGateway, or scraped from the agent."
)
ABOUT = """The metrics of group `persia`, as named and described by the catalog of the Persia metrics library (`catalog.h`). The workers count, \
`persia-metrics-agent` pushes to the PushGateway, and Prometheus scrapes the gateway, or the agent itself, with `honor_labels: true`.

An unmodified PersiaML node that pushes to the same gateway under the name of such a job is shown, too, without `role`. Its percentiles need histograms, \
which PersiaML had until November 2021. Progress and goodput of the same job: {job}. Processes of one replica: {rank}. Pushes that fail: {exporter}."""
LINKS = {"job": "persia-job", "rank": "persia-rank", "exporter": "persia-exporter"}
VARIABLES = []

# The bound of staleness is a setting of the job: adapt these thresholds to it.
THRESHOLDS = {
    "staleness": [(None, "green"), (16, "yellow"), (64, "red")],
    "num_pending_batches": [(None, "yellow"), (1, "green")],
    "nan_count": [(None, "green"), (1e-9, "red")],
    "nan_grad_skipped": [(None, "green"), (1e-9, "red")],
    "gradient_id_miss_count": [(None, "green"), (1e-9, "yellow")],
}
HOW_TO_READ = {
    "index_miss_count": "High at first, while rows are created; later it means that rows are evicted, or that ids are new.",
    "gradient_id_miss_count": "Above 0, rows are evicted between look-up and update: the servers' capacity is too small.",
    "staleness": "At the job's bound the trainer waits. Thresholds: 16 and 64; set them to the bound.",
    "num_pending_batches": "At 0 the trainer waits for data: the data loader is the bottleneck.",
    "nan_count": "Investigate any value above 0.",
    "nan_grad_skipped": "Investigate any value above 0.",
    "lookup_rpc_time_cost": "Compare with the servers' lookup_mixed_batch_time_cost: the difference is the network.",
    "lookup_batched_time_cost": "The sum of making requests, waiting for servers, and summation.",
}


def title(entry):
    words = entry.name.removesuffix("_time_cost").replace("_", " ").replace("lookup", "look-up").replace("nan ", "NaN ").replace("rpc", "RPC")
    return words[0].upper() + words[1:]


def description(entry, what):
    return " ".join([entry.help, what, HOW_TO_READ.get(entry.name, "")]).strip()


def by_replica(entry):
    """The labels that distinguish an entry's series, and the legend for them."""
    return (f"{RANK}, {entry.label}", f"{RANK_LEGEND} {{{{{entry.label}}}}}") if entry.label else (RANK, RANK_LEGEND)


def counter(entry):
    by, legend = by_replica(entry)
    how = description(entry, "Per second, by replica" + (f" and {entry.label}." if entry.label else "."))
    return worst_chart(title(entry), how, "cps", total_rate(by, entry.name), legend, size=(6, 8), **thresholds(entry))


def gauge(entry, size=(6, 8)):
    by, legend = by_replica(entry)
    unit = "percentunit" if entry.unit == "ratio" else "short"
    value = over("max", by, select(entry.name))
    lowest = THRESHOLDS.get(entry.name, [(None, "green")])[0][1] != "green"
    return worst_chart(title(entry), description(entry, ""), unit, value, legend, lowest=lowest, size=size, **thresholds(entry))


def thresholds(entry):
    return {"thresholds": THRESHOLDS[entry.name]} if entry.name in THRESHOLDS else {}


def time_cost(entry, size):
    return times_chart(title(entry) + " time", description(entry, "Mean and percentiles over all selected replicas."), entry.name, size=size)


def time_cost_by_replica(entry):
    last = over("max", RANK, select(entry.name + "_sec"))
    durations = {"mean": mean(entry.name, RANK), "last batch": last}
    what = description(entry, "The mean, and the value of the last batch.")
    return worst_chart(title(entry) + " time by replica", what, "s", durations, RANK_LEGEND, summary="avg")


def spread(entry):
    expr = total_rate("le", entry.name + "_bucket")
    return heatmap(title(entry) + " time, spread", description(entry, "Look-ups per second by duration."), expr)


def overview():
    staleness, pending = THRESHOLDS["staleness"], THRESHOLDS["num_pending_batches"]
    lookups = query(total_rate("job", "lookup_batched_time_cost_count"), "per second")
    slow = query(quantile(0.95, "lookup_batched_time_cost", "job"), "p95")
    misses = query(over("avg", "job", select("index_miss_ratio")), "mean")
    oldest = query(unless_ended(over("max", "job", select("staleness"))), "highest")
    waiting = query(unless_ended(over("sum", "job", select("num_pending_batches"))), "batches")
    skipped = query(or_zero(over("sum", "job", increase("nan_grad_skipped"))), "skipped")
    any_red = [(None, "green"), (0.5, "red")]  # increase() extrapolates, so a count is a fraction
    return [
        stat("Look-ups", "Batches looked up per second: how fast the job trains.", "ops", lookups),
        stat("Look-up time, p95", "19 of 20 batches are looked up within this time.", "s", slow),
        stat("Index misses", "Share of ids that the servers did not have, mean of the last look-ups.", "percentunit", misses),
        stat("Highest staleness", "Batches in flight at the worker with the most.", "short", oldest, staleness),
        stat("Pending batches", "Batches that wait for a trainer. 0: the data loader is the bottleneck.", "short", waiting, pending),
        stat("Gradients skipped", "Gradients skipped because of a NaN or infinity, in the time range.", "short", skipped, any_red, decimals=0),
    ]


def rows():
    entries = catalog.entries()
    accuracy = [counter(entry) if entry.type == "counter" else gauge(entry) for entry in entries if entry.table == "accuracy"]
    efficiency = [entry for entry in entries if entry.table == "efficiency"]
    costs = [entry for entry in efficiency if entry.type == "time_cost"]
    lookups = [entry for entry in costs if entry.name.startswith("lookup_")]
    wide = [panel for entry in lookups for panel in (time_cost(entry, (12, 8)), spread(entry))]
    narrow = [gauge(entry, (8, 8)) if entry.type == "gauge" else time_cost(entry, (8, 8)) for entry in efficiency if entry not in lookups]
    return {
        "Overview": overview(),
        "Accuracy related": accuracy,
        "Efficiency related": wide + narrow,
        "Replicas side by side": [time_cost_by_replica(entry) for entry in costs],
    }
