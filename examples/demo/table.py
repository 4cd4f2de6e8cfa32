"""Compares a gateway's values with the job's own counts.

The job's report is JSON: {"metrics": [{"role", "replica", "name", "type", "labels", ...}]} with "value" for a counter or a gauge,
and "count", "sum" and "last" for a time cost.
"""

from collections import namedtuple

# A number on the gateway and in the report; None if it is missing. `must_agree`: it is a count, which must be equal.
Row = namedtuple("Row", "name what gateway job must_agree")


def series_key(family, role, replica, labels):
    return family, role, f"rep_{replica}", tuple(sorted(labels.items()))


def gateway_values(groups, job_name):
    """Value, or (count, sum), by family and labels, of one job."""
    values = {}
    for group in groups:
        if group["labels"].get("job") != job_name:
            continue
        for family, content in group.items():
            if not isinstance(content, dict) or "metrics" not in content:
                continue
            for metric in content["metrics"]:
                labels = dict(metric.get("labels", {}))
                role, instance = labels.pop("role", ""), labels.pop("instance", "")
                for common in ("job", "ip_addr"):
                    labels.pop(common, None)
                key = (family, role, instance, tuple(sorted(labels.items())))
                if "count" in metric:
                    values[key] = (float(metric["count"]), float(metric["sum"]))
                else:
                    values[key] = float(metric["value"])
    return values


def rows(groups, report, job_name):
    """A row for each number that the job reported, in the report's order."""
    on_gateway = gateway_values(groups, job_name)
    result = []
    for metric in report["metrics"]:
        name, labels = metric["name"], metric.get("labels", {})
        where = [f"{metric['role']} {metric['replica']}"] + [f"{key}={value}" for key, value in sorted(labels.items())]
        what = ", ".join(where)
        if metric["type"] == "time_cost":
            histogram = on_gateway.get(series_key(name, metric["role"], metric["replica"], labels), (None, None))
            result.append(Row(name, what + ", count", histogram[0], metric["count"], True))
            last = on_gateway.get(series_key(name + "_sec", metric["role"], metric["replica"], labels))
            result.append(Row(name + "_sec", what + ", last", last, metric["last"], False))
        else:
            value = on_gateway.get(series_key(name, metric["role"], metric["replica"], labels))
            result.append(Row(name, what, value, metric["value"], metric["type"] == "counter"))
    return result


def problems(table, names):
    """Problems, one sentence each: a count that differs, a number that is not on the gateway, a metric that the job did not report."""
    found = []
    for row in table:
        if row.gateway is None and row.job is not None:
            found.append(f"{row.name} ({row.what}) is not on the gateway")
        elif row.must_agree and row.gateway != row.job:
            found.append(f"{row.name} ({row.what}): the gateway holds {row.gateway!r}, the job counted {row.job!r}")
    reported = {row.name for row in table}
    found += [f"{name}: the job did not report it" for name in names if name not in reported]
    return found


def _number(value):
    if value is None:
        return "-"
    return f"{int(value):,}" if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"


def render(table):
    """The rows as text, numbers right-aligned."""
    lines = [("metric", "of", "on the gateway", "counted by the job", "")]
    lines += [
        (row.name, row.what, _number(row.gateway), _number(row.job), "=" if row.gateway == row.job else "differs") for row in table
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    text = []
    for line in lines:
        left = "  ".join(line[column].ljust(widths[column]) for column in (0, 1))
        right = "  ".join(line[column].rjust(widths[column]) for column in (2, 3))
        text.append(f"{left}  {right}  {line[4]}".rstrip())
    return "\n".join(text)
