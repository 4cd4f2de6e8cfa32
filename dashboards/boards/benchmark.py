"""The board of benchmark runs: the metrics sent by Benchmark AI's `emit`."""

from .grafana import chart, query, repeated, stat, table, variable
from .promql import increase, or_zero, over, select, since_change, total_rate

UID = "persia-benchmark"
TITLE = "Benchmark runs"
DESCRIPTION = (
    "Metrics that benchmarks send with Benchmark AI's emit, by name. "
    "Source: the group benchmarkai, which persia-metrics-agent reads from the named pipe (--fifo) or from the program's segment."
)
ABOUT = """Metrics that a benchmark sends with `emit({{"alexnet.batchsize16.latency": 12.5}})`: through the named pipe that `persia-metrics-agent --fifo` \
reads, or without a pipe, with `BENCHMARK_AI=segment`. Each name is a gauge `benchmarkai_<name>` with the last value; characters that Prometheus does not \
allow are replaced by `_`, and units are the benchmark's own. A rule in `mapping_file` may change this. The job itself: {job}."""
LINKS = {"job": "persia-job"}
METRICS = '{__name__=~"benchmarkai_.+", job=~"$job", instance=~"$instance"}'
VARIABLES = [variable("metric", "Metric", "__name__", METRICS, "benchmarkai_.+")]

LINES = {word: ("persia_agent_fifo_lines_total", f'result="{word}"') for word in ("good", "bad")}
CHOSEN = select("", '__name__=~"$metric"')


def overview():
    names = over("count", "job", over("count", "job, __name__", CHOSEN))
    series = over("count", "job", CHOSEN)
    lines = or_zero(over("sum", "job", increase(*LINES["good"])))
    bad = or_zero(over("sum", "job", increase(*LINES["bad"])))
    unchanged = or_zero(over("min", "job", since_change()))
    any_red = [(None, "green"), (0.5, "red")]
    return [
        stat("Names", "Number of metrics, by name.", "short", query(names, "{{job}}")),
        stat("Names and labels", "Number of metrics, by name and labels.", "short", query(series, "{{job}}")),
        stat("Lines", "Lines read from the pipe in the time range; 0 if emit uses no pipe.", "short", query(lines, "{{job}}"), decimals=0),
        stat("Bad lines", "Lines of which a part could not be parsed; the agent's log quotes the first.", "short", query(bad, "{{job}}"), any_red, decimals=0),
        stat("Last change", "Time since a process of the job last changed a metric; 0 once it has ended.", "s", query(unchanged, "{{job}}")),
    ]


def rows():
    lines = [query(or_zero(total_rate("job", *which)), "{{job}} " + word) for word, which in LINES.items()]
    every = ("lastNotNull", "min", "mean", "max")
    values = [query(CHOSEN, "__auto")]
    one = chart("$metric", "Values emitted under this name.", "short", values, legend_calcs=every, signed=True)
    return {
        "Overview": overview(),
        "By name": [repeated(one, "metric", 3)],
        "Last values": [
            table("Last values", "The last value of each name and its labels.", "short", [("value", CHOSEN)], {"__name__": "name", "ip_addr": None}, (16, 10)),
            chart("Lines by result", "Lines read from the pipe per second.", "cps", lines, (8, 10)),
        ],
    }
