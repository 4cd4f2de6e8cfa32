"""Building blocks of the boards' expressions. Every selector has the board's job and instance."""

RATE = "$__rate_interval"
# The labels of a rank, and the legend of its line in a chart of one job.
RANK, RANK_LEGEND = "job, instance, role", "{{role}} {{instance}}"
WORST = 8  # lines of a chart that has one for each of many ranks, hosts or devices


CHOSEN = 'job=~"$job", instance=~"$instance"'


def select(name, *matchers):
    """A metric of the selected jobs and instances, and more matchers, such as 'result="failure"'. Without a name, one is on __name__."""
    return name + "{" + ", ".join([*matchers, CHOSEN]) + "}"


def rate(name, *matchers):
    """Increase per second of a counter, or of a histogram's sum or count."""
    return f"rate({select(name, *matchers)}[{RATE}])"


def increase(name, *matchers, range="$__range"):
    """Increase of a counter in the board's time range."""
    return f"increase({select(name, *matchers)}[{range}])"


def over(operator, by, expression):
    """An aggregation: over("sum", "job, feat", ...)."""
    return f"{operator} by ({by}) ({expression})"


def total_rate(by, name, *matchers):
    return over("sum", by, rate(name, *matchers))


def mean(histogram, by):
    return f"{total_rate(by, histogram + '_sum')} / {total_rate(by, histogram + '_count')}"


def quantile(q, histogram, by):
    return f"histogram_quantile({q}, {total_rate(by + ', le', histogram + '_bucket')})"


def native_mean(histogram, by):
    """Where Prometheus stores a native histogram."""
    rates = total_rate(by, histogram)
    return f"histogram_sum({rates}) / histogram_count({rates})"


def native_quantile(q, histogram, by):
    return f"histogram_quantile({q}, {total_rate(by, histogram)})"


def worst(expression, by="job", lines=WORST, lowest=False, summary=None):
    """Of each job, the series that were highest, or lowest, in the board's time range: the same lines at each point, and few of them.

    `summary`: what of a series is compared, max or avg; by default its extreme.
    """
    summary = summary or ("min" if lowest else "max")
    pick = "bottomk" if lowest else "topk"
    return f"({expression}) and {pick} by ({by}) ({lines}, {summary}_over_time(({expression})[$__range:$__interval] @ end()))"


def band(expression, by="job"):
    """The lowest, the middle and the highest of many series, by their legend."""
    return {"max": over("max", by, expression), "median": f"quantile by ({by}) (0.5, {expression})", "min": over("min", by, expression)}


def or_zero(expression, by="job", where="persia_process_up", label=None):
    """The expression, and 0 for each job or instance that has `where` and no series in it: a counter has none before its first event.

    `label`: an additional label of the expression; it is "none" on the zero.
    """
    zero = over("max", by, "0 * " + select(where))
    return f"{expression} or on ({by}) " + (f'label_replace({zero}, "{label}", "none", "", "")' if label else zero)


def mean_so_far(histogram, by):
    """Over the whole run: for events that are too rare for rates."""
    return f"{over('sum', by, select(histogram + '_sum'))} / {over('sum', by, select(histogram + '_count'))}"


def quantile_so_far(q, histogram, by):
    return f"histogram_quantile({q}, {over('sum', by + ', le', select(histogram + '_bucket'))})"


def age(timestamp, *matchers):
    return f"time() - {select(timestamp, *matchers)}"


COMMANDS = over("max", "job", select("persia_exec_running"))
WORKERS = over("sum", "job", select("persia_agent_segments", 'state="live"'))


ENDED = f"({COMMANDS} == 0 or ({WORKERS} == 0 unless on (job) {COMMANDS} == 1))"


def unless_ended(expression):
    """The expression without jobs that have ended: a gateway keeps their last values, which would warn, and grow old, for ever."""
    return f"({expression}) unless on (job) {ENDED}"


def since_change():
    """Seconds since a metric of a process last changed, for each running process."""
    return f"({age('persia_process_last_change_timestamp_seconds')}) and {select('persia_process_up')} == 1"
