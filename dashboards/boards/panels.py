"""Panels for many ranks, hosts or devices, which stay readable with hundreds of them, and panels of counters and durations."""

from .grafana import chart, override, query
from .promql import WORST, band, mean, over, quantile, worst

PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def band_chart(title, description, unit, expression, more=(), size=(8, 8), **options):
    """The lowest, the middle and the highest of the series, as a band with a line. `more`: further queries."""
    queries = [*(query(expr, legend) for legend, expr in band(expression).items()), *more]
    edges = [override("max", custom__fillBelowTo="min", custom__lineWidth=0), override("min", custom__lineWidth=0), override("median", custom__lineWidth=2)]
    return chart(title, description + " Lowest, median and highest.", unit, queries, size, overrides=edges, **options)


def worst_chart(title, description, unit, expressions, legend, more=(), size=(8, 8), by="job", lowest=False, summary=None, **options):
    """The few series that are highest, or lowest, in the time range. `expressions`: one, or several by the words that follow the legend."""
    if isinstance(expressions, str):
        expressions = {"": expressions}
    lines = max(2, WORST // len(expressions))
    queries = [query(worst(expr, by, lines, lowest, summary), f"{legend} {words}".strip()) for words, expr in expressions.items()]
    which = "Only the lowest ones of the time range." if lowest else "Only the highest ones of the time range."
    return chart(title, f"{description} {which}", unit, [*queries, *more], size, **options)


def times_chart(title, description, histogram, by="job", legend="", size=(8, 8)):
    """Mean and percentiles of a duration."""
    queries = [query(mean(histogram, by), f"{legend} mean".strip())]
    queries += [query(quantile(q, histogram, by), f"{legend} {words}".strip()) for words, q in PERCENTILES.items()]
    return chart(title, description, "s", queries, size)


def worst_times_chart(title, description, histogram, by, legend, group="job", size=(8, 8)):
    """Mean and p99 of a duration of many members, of those that are slowest."""
    durations = {"mean": mean(histogram, by), "p99": quantile(0.99, histogram, by)}
    return worst_chart(title, description, "s", durations, legend, size=size, by=group)


def most(by, expression):
    """The highest of each group: of several processes of a rank, or agents of a host."""
    return over("max", by, expression)
