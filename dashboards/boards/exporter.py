"""The board of the exporter: the agents, and their groups on the gateway. agent/METRICS.md describes the metrics."""

import re

from .grafana import query, stat, table
from .jobs import LISTED
from .panels import worst_chart, worst_times_chart
from .promql import age, mean, native_mean, native_quantile, or_zero, over, quantile, select, total_rate, unless_ended

UID = "persia-exporter"
TITLE = "Exporter health"
DESCRIPTION = (
    "Whether metrics arrive, and their cost: pushes, series, segments, quarantined and lost data. "
    "Source: persia_agent_* of persia-metrics-agent, and push_time_seconds of the PushGateway."
)
ABOUT = """The metrics of `persia-metrics-agent` about itself (`persia_agent_*`, role `agent`), and those of the PushGateway about each group \
(`push_time_seconds`, `push_failure_time_seconds`). The agent's `METRICS.md` describes them. A gateway keeps the last values of a group: if an agent is \
gone, its push age grows, and no data is missing. If Prometheus scrapes the agent directly, the gateway's panels are empty. Of many agents, \
a chart shows those that are worst. The job itself: {job}."""
LINKS = {"job": "persia-job"}
VARIABLES = []

AGENT, AGENT_LEGEND = "job, instance", "{{job}} {{instance}}"
GATEWAY, GATEWAY_LEGEND = "job, instance, gateway", "{{job}} {{instance}} {{gateway}}"
GROUP, GROUP_LEGEND = "job, instance, role", "{{job}} {{instance}} {{role}}"
OLD = [(None, "green"), (30, "yellow"), (120, "red")]
RED_FROM_1 = [(None, "green"), (1, "red")]
LINES = {word: ("persia_agent_fifo_lines_total", f'result="{word}"') for word in ("good", "bad")}
LAST_PUSH = "persia_agent_last_push_success_timestamp_seconds"


def _worst(title, what, unit, expressions, legend=AGENT_LEGEND, size=(8, 8), thresholds=None, **options):
    """Of all agents of all jobs that are chosen. `expressions`: one, or several by the words that follow the legend."""
    more = {"thresholds": thresholds} if thresholds else {}
    return worst_chart(title, what, unit, expressions, legend, by="", size=size, **more, **options)


def now(title, what, metric, legend=AGENT_LEGEND, by=AGENT, unit="short", thresholds=None, size=(8, 8), **options):
    """A gauge."""
    return _worst(title, what, unit, over("sum", by, select(metric)), legend, size, thresholds, **options)


def per_second(title, what, metrics, unit="cps", size=(8, 8)):
    """Counters. `metrics`: the words or labels, such as {{result}}, that follow the agent in the legend, by metric."""
    rates = {}
    for name, words in metrics.items():
        rates[words] = total_rate(", ".join([AGENT, *re.findall(r"{{(\w+)}}", words)]), name)
    return _worst(title, what, unit, rates, size=size, summary="avg")


def times(title, what, histogram, by=AGENT, legend=AGENT_LEGEND):
    return worst_times_chart(title, what, histogram, by, legend, group="")


def overview():

    def now_of(operator, expression):
        return query(unless_ended(over(operator, "job", expression)), "{{job}}")

    oldest = now_of("max", age(LAST_PUSH))
    failing = now_of("max", select("persia_agent_push_consecutive_failures"))
    group = now_of("max", age("push_time_seconds"))
    series = now_of("sum", select("persia_agent_series"))
    held = now_of("sum", select("persia_agent_quarantined_series"))
    dropped = now_of("sum", select("persia_agent_dropped_series"))
    return [
        stat("Push age", "Time since all groups were last pushed successfully, at the agent where it is longest.", "s", oldest, OLD),
        stat("Failures in a row", "Failed pushes since the last successful one.", "short", failing, RED_FROM_1),
        stat("Oldest group", "Time since the oldest group was last pushed; it may be of an instance that has ended.", "s", group, OLD),
        stat("Series", "Series of the last collection.", "short", series),
        stat("Quarantined", "Series that are not pushed because the gateway would refuse them; the agent's log names them.", "short", held, RED_FROM_1),
        stat("Dropped", "Series that are not exposed because of a limit.", "short", dropped, RED_FROM_1),
    ]


def pushes():
    interval = query(f"max({select('persia_agent_push_interval_seconds')})", "longest interval")
    ages = over("max", GATEWAY, age(LAST_PUSH))
    failed = f"{select('push_failure_time_seconds')} > bool {select('push_time_seconds')}"
    bytes_sent = {"persia_agent_push_bytes_total": "{{gateway}}"}
    duration = ("persia_agent_push_duration_seconds", GATEWAY, GATEWAY_LEGEND)
    rows = "Time since each group was last pushed, by the gateway. It grows if the agent or the instance is gone."
    results = {"persia_agent_pushes_total": "{{gateway}} {{result}}"}
    return [
        _worst(
            "Push age of agents",
            "Time since all groups were last pushed successfully, and the interval of pushes.",
            "s",
            ages,
            GATEWAY_LEGEND,
            thresholds=OLD,
            more=[interval],
        ),
        per_second("Pushes by result", "One push sends all groups.", results),
        now(
            "Failed pushes in a row", "0 if the last push succeeded.", "persia_agent_push_consecutive_failures", GATEWAY_LEGEND, GATEWAY, thresholds=RED_FROM_1
        ),
        times("Push duration", "From the first request to the last response, with retries and waits.", *duration),
        per_second("Bytes pushed", "Request bodies, after compression.", bytes_sent, "binBps"),
        _worst("Age of groups on the gateway", rows, "s", over("max", GROUP, age("push_time_seconds")), GROUP_LEGEND),
        _worst("Groups whose last push was refused", "1 if the gateway refused it.", "short", over("max", GROUP, failed), GROUP_LEGEND, thresholds=RED_FROM_1),
        now("Groups", "Groups that the agent may have created and has not deleted.", "persia_agent_groups"),
        per_second("Groups ended", "Groups that the agent deleted because nothing pushes them any more.", {"persia_agent_groups_deleted_total": ""}),
    ]


def remote_write():
    by, legend = AGENT + ", target", AGENT_LEGEND + " {{target}}"

    def panel(title, what, unit, expressions, size=(8, 8), thresholds=None):
        expressions = {word: or_zero(expression, AGENT, "persia_agent_series", "target") for word, expression in expressions.items()}
        return _worst(title, what + " 0 without remote write.", unit, expressions, legend, size, thresholds)

    def total(name):
        return total_rate(by, f"persia_agent_remote_write_{name}_total")

    def gauge(name):
        return over("sum", by, select(f"persia_agent_remote_write_{name}"))

    def behind(name):
        return over("max", by, age(f"persia_agent_remote_write_{name}_timestamp_seconds"))

    lost = {"refused": total("samples_failed"), "dropped": total("samples_dropped"), "damaged places": total("queue_damaged")}
    behinds = {"oldest that waits": behind("oldest_pending"), "newest that was taken": behind("highest_sent")}
    requests = total_rate(AGENT + ", status", "persia_agent_remote_write_requests_total")
    of_all = "Requests to all targets, by the status of the response; none: there was no response. 0 without remote write."
    duration = "persia_agent_remote_write_request_duration_seconds"
    durations = {
        "mean": f"{mean(duration, by)} or {native_mean(duration, by)}",
        "p99": f"{quantile(0.99, duration, by)} or {native_quantile(0.99, duration, by)}",
    }
    metadata = {"accepted": total("metadata"), "failed": total("metadata_failed")}
    queue = {"waits": gauge("pending_bytes"), "on disk": gauge("queue_bytes"), "limit": gauge("queue_max_bytes")}
    return [
        panel("Samples written remotely", "Samples that the target accepted.", "cps", {"": total("samples")}),
        panel("Samples lost on the way", "Rejected by the target, dropped by the agent, or damaged on disk.", "cps", lost, thresholds=RED_FROM_1),
        panel("Behind", "Age of the oldest sample that waits, and of the newest that the target accepted.", "s", behinds, thresholds=OLD),
        panel("Samples that wait", "In the disk queue, without those of the newest collection.", "short", {"": gauge("pending_samples")}),
        panel("Queue on disk", "Requests that are not sent yet, all files of the queue, and their limit.", "bytes", queue),
        panel("Bytes written remotely", "Request bodies, after compression.", "binBps", {"": total("bytes")}),
        _worst("Requests by status", of_all, "reqps", or_zero(requests, AGENT, "persia_agent_series", "status"), AGENT_LEGEND + " {{status}}", (12, 6)),
        panel("Request duration", "Time of one request, with its response.", "s", durations, (12, 6)),
        panel("Requests sent again", "Requests that the target had not accepted.", "reqps", {"": total("retries")}, (12, 6)),
        panel("Metadata", "Families whose type, unit and help text the target accepted, or did not.", "cps", metadata, (12, 6)),
    ]


def series():
    lost = {"persia_metrics_dropped_total": "{{reason}}", "persia_metrics_lost_total": "{{metric}}, {{reason}}"}
    retired = {"persia_agent_retired_processes_total": "processes", "persia_agent_retired_series_dropped_total": "series dropped"}
    by_reason = (AGENT_LEGEND + " {{reason}}", AGENT + ", reason")
    limit = query(f"min({select('persia_agent_max_series')})", "lowest limit")
    return [
        now("Series of agents", "Series of the last collection, and their limit.", "persia_agent_series", more=[limit]),
        now("Dropped series", "Not exposed now, by the limit that they exceed.", "persia_agent_dropped_series", *by_reason),
        now("Quarantined series", "Not pushed now, by reason; tried again hourly.", "persia_agent_quarantined_series", *by_reason),
        per_second("Measurements lost in workers", "Measurements that a library could not record, by reason, and by metric.", lost),
        per_second("Ended processes", "Processes whose values are in the agent's state, and series dropped because of a limit.", retired),
        now("Identity conflicts", "1: another agent of the host has the same identity.", "persia_agent_identity_conflicts", thresholds=RED_FROM_1),
    ]


def segments():
    unknown = {"persia_agent_segment_records_skipped_total": "records", "persia_agent_event_records_lost_total": "events"}
    lines = {word: or_zero(total_rate(AGENT, *which), AGENT, "persia_agent_series") for word, which in LINES.items()}
    used = over("max", GROUP, select("persia_process_segment_used_ratio"))
    free, size = (over("min", AGENT, select(f"persia_agent_metrics_dir_{what}_bytes")) for what in ("free", "size"))
    refused = ("persia_agent_segments_refused", AGENT_LEGEND + " {{reason}}", AGENT + ", reason")
    state = ("persia_agent_segments", AGENT_LEGEND + " {{state}}", AGENT + ", state")
    return [
        now("Segments", "In the job's directory.", *state),
        now("Broken segments", "Unreadable now: their last good values are exposed.", "persia_agent_segments_broken", thresholds=RED_FROM_1),
        now("Refused segments", "Not read, by reason.", *refused),
        now("State not on disk", "How long the oldest change of the state has been waiting.", "persia_agent_state_unsaved_seconds", unit="s"),
        per_second("State writes", "Bytes written to the state file.", {"persia_agent_state_written_bytes_total": ""}, unit="binBps"),
        now("State file", "Its size.", "persia_agent_state_bytes", unit="bytes"),
        per_second(
            "Records not read", "Records of kinds that the agent does not know, and event records overwritten before they were read.", unknown, size=(12, 8)
        ),
        _worst("Lines of emit", "Lines read from the named pipe, by result.", "cps", lines, size=(12, 8)),
        _worst("Use of segments", "How full the fullest segment of each worker is.", "percentunit", used, GROUP_LEGEND, (12, 8), max=1),
        _worst("Space for segments", "Free share of the filesystem with the segments.", "percentunit", f"{free} / {size}", size=(12, 8), lowest=True, max=1),
    ]


def work():
    parts = {"collect": "persia_agent_collect_duration_seconds", "render": "persia_agent_render_duration_seconds", "push": "persia_agent_push_duration_seconds"}
    busy = {word: total_rate(AGENT, name + "_sum") for word, name in parts.items()}
    oddities = {
        "persia_agent_ticks_skipped_total": "ticks skipped",
        "persia_agent_log_lines_suppressed_total": "log lines left out",
        "persia_agent_restarts_total": "restarts of the agent",
        "persia_agent_state_errors_total": "failed writes of the state",
    }
    reload = over("min", AGENT, select("persia_agent_config_last_reload_successful"))
    errors = over("max", AGENT, select("persia_agent_config_errors"))
    since = over("min", AGENT, age("persia_agent_config_last_reload_success_timestamp_seconds"))
    bad = [(None, "red"), (1, "green")]
    cpu = total_rate(AGENT, "persia_agent_cpu_seconds_total")
    return [
        times("Collect duration", "Time to read and merge all sources.", "persia_agent_collect_duration_seconds"),
        _worst("Time at work", "Share of time in which the agent collects, renders for scrapes, and pushes.", "percentunit", busy, summary="avg"),
        per_second(
            "Scrapes", "Requests for /metrics that were answered; 0 if Prometheus scrapes only the gateway.", {"persia_agent_scrapes_total": ""}, "reqps"
        ),
        per_second(
            "Left out",
            "Push intervals skipped because a collection took longer, log lines suppressed by the limit, and restarts of the agent under exec.",
            oddities,
            size=(6, 8),
        ),
        per_second("Reloads of the settings", "By result.", {"persia_agent_config_reloads_total": "{{result}}"}, size=(6, 8)),
        _worst("Settings good", "1 if the last reload of the settings succeeded.", "short", reload, size=(6, 8), thresholds=bad, lowest=True, max=1),
        _worst("Errors in the settings", "In the settings in use.", "short", errors, size=(6, 8), thresholds=RED_FROM_1),
        _worst("Age of the settings", "Time since the settings in use were read.", "s", since, size=(12, 6)),
        _worst("Processor time of the agent", "Cores in use.", "short", cpu, summary="avg"),
        now("Memory of the agent", "Resident memory.", "persia_agent_resident_memory_bytes", unit="bytes"),
        per_second("Log lines", "Lines that the agent wrote to its log, by level.", {"persia_agent_log_lines_total": "{{level}}"}),
        now(
            "Reader of GPUs",
            "1 if the process that reads the GPUs works, where the driver's library is installed.",
            "persia_agent_gpu_reader_up",
            thresholds=bad,
            size=(12, 8),
            lowest=True,
        ),
        per_second("Restarts of the reader of GPUs", "It ended, hung, or could not read them.", {"persia_agent_gpu_reader_restarts_total": ""}, size=(12, 8)),
    ]


def versions():
    commands = [("running", "persia_exec_running"), ("seconds", "persia_exec_run_time_seconds"), ("exit code", "persia_exec_exit_code")]
    commands = [(column, over("max", AGENT, select(name))) for column, name in commands]
    hidden = {label: None for label in ("__name__", "ip_addr")}
    return [
        table("Commands", "Commands of exec: 1 while running, run time, exit code.", "none", commands, size=(8, 8)),
        table("Agents", "Version, compiler and segment format.", "none", [("up", select("persia_agent_build_info"))], hidden, (8, 8)),
        table("Runs", "Run, versions and restarts of each identity's newest process.", "none", [("up", select(LISTED))], hidden, (8, 8)),
    ]


def rows():
    return {
        "Overview": overview(),
        "Pushes and the gateway": pushes(),
        "Remote write": remote_write(),
        "Series": series(),
        "Segments, events and pipe": segments(),
        "Work of the agent": work(),
        "Commands and versions": versions(),
    }
