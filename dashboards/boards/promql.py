"""The expressions of the boards, in small pieces. Every selector has the board's job and instance."""

RATE = "$__rate_interval"


def select(name, *matchers):
    """A metric of the chosen jobs and instances; more matchers, such as 'result="failure"'. No name: one of them is on __name__."""
    return name + "{" + ", ".join([*matchers, 'job=~"$job"', 'instance=~"$instance"']) + "}"


def rate(name, *matchers):
    """What a counter, or a histogram's sum or count, adds in a second."""
    return f"rate({select(name, *matchers)}[{RATE}])"


def increase(name, *matchers, range="$__range"):
    """What a counter has added in the time that the board shows."""
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


def or_zero(expression, by="job", where="persia_process_up", label=None):
    """0 for each job, or instance, that has `where`, if the expression says nothing of it: what never happened has no series yet.

    `label`: one that the expression has besides; "none" on the zero.
    """
    zero = over("max", by, "0 * " + select(where))
    return f"{expression} or on ({by}) " + (f'label_replace({zero}, "{label}", "none", "", "")' if label else zero)


def mean_so_far(histogram, by):
    """Of the whole run: for what happens too seldom for rates."""
    return f"{over('sum', by, select(histogram + '_sum'))} / {over('sum', by, select(histogram + '_count'))}"


def quantile_so_far(q, histogram, by):
    return f"histogram_quantile({q}, {over('sum', by + ', le', select(histogram + '_bucket'))})"


def age(timestamp, *matchers):
    return f"time() - {select(timestamp, *matchers)}"


def silence():
    """Seconds since a metric of a process last changed, for each process that is up."""
    return f"({age('persia_process_last_change_timestamp_seconds')}) and {select('persia_process_up')} == 1"
