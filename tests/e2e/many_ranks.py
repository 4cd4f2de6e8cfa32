"""A job of 256 ranks on 32 hosts with 256 GPUs for promtool's tests: each metric that a board asks for, with the labels of the documents.

The input has a series for each rank and each host. A recording rule makes each metric of them, since promtool is slow to read thousands of series.
"""

import itertools
import re

import dashboard_rules
from servers import ROOT

RANKS, RANKS_OF_HOST = 256, 8
JOB = "large"
# Of labels that have many values in such a job; those of the others have one.
VALUES = {
    "bucket": ["data", "compute", "sync", "down"],
    "phase": ["data", "forward", "backward", "sync", "optimizer", "checkpoint"],
    "result": ["success", "failure", "good", "bad"],
    "state": ["live", "ended"],
    "le": ["1", "+Inf"],
    "scope": ["host", "cgroup"],
    "use": ["shm", "state", "working_directory"],
    "device": ["eth0", "eth1"],
    "reason": ["hw_slowdown"],
    "class": ["fatal", "application"],
    "xid": ["31", "79"],
    "kind": ["corrected", "uncorrected"],
    "alertname": ["PersiaJobHung", "PersiaStraggler"],
    "alertstate": ["firing"],
    "owner": ["vision"],
    "feat": ["user_id", "item_id"],
    "event": ["checkpoint", "restart"],
    "function": ["evaluate", "load"],
}
OF_RANKS = re.compile(
    r"persia_(process|rank|phase|progress|event|events|metrics|gpu|straggler|hang|job_info)(_|$)|rank:|torchelastic_|own_|benchmarkai_|push_(failure_)?time"
)


def labels_of_documents():
    """Each metric's labels beside those of its identity."""
    found = {}
    for document in ("agent/METRICS.md", "docs/gpu.md"):
        for name, labels in re.findall(r"^\| `(\w+)` \| \w+ \| ([^|]*) \|", (ROOT / document).read_text(), re.M):
            found[name] = re.findall(r"`(\w+)`", labels)
    more = ["persia_phase_seconds_total", "persia_phase_duration_seconds", "rank:straggler:seconds_per_step", "rank:hang:seconds"]
    return {**found, **{name: ["phase"] for name in more}, "ALERTS": ["alertname", "alertstate"], "ALERTS_FOR_STATE": ["alertname"]}


DOCUMENTED = labels_of_documents()
STATES = re.compile(r"persia_(gpu_up|gpu_throttled|exec_running|infiniband_state_id|process_up)")
OWN = ["own_loss", "own_batches_total", "own_time_bucket", "own_time_sum", "own_time_count"]
OWN_FAMILIES = ["own_loss", "own_batches_total", "own_time"]


def input_series(points):
    """Two metrics: a series for each rank, and one for each host's agent. They rise, so that each rate has a value."""
    for rank in range(RANKS):
        host = f'ip_addr="10.0.0.{rank // RANKS_OF_HOST}"'
        yield {"series": f'of_rank{{job="{JOB}", instance="rep_{rank}", role="trainer", {host}}}', "values": f"1+1x{points}"}
        if rank % RANKS_OF_HOST == 0:
            yield {"series": f'of_agent{{job="{JOB}", instance="rep_{rank}", role="agent", {host}}}', "values": f"1+1x{points}"}


def _source(name):
    """The expression whose series a metric has."""
    if name in ("ALERTS", "ALERTS_FOR_STATE"):
        return "max by (job) (of_agent)"
    if name == "agent:replaced:bool":
        return "of_agent < 0"  # none was
    family = re.sub("_(bucket|sum|count)$", "", name)
    source = "of_rank" if OF_RANKS.match(name) or not {name, family} & set(DOCUMENTED) else "of_agent"
    return f"0 * {source} + 1" if STATES.fullmatch(name) else source


def labels_asked(name, expressions):
    """Labels with the values that a metric's selectors ask for."""
    wanted = {}
    for expression in expressions:
        for metric, matchers, _, _ in dashboard_rules.selectors(expression):
            if metric == name:
                for label, (operator, value) in matchers.items():
                    if operator == "=":
                        wanted.setdefault(label, set()).add(value)
    return wanted


def rules(names, expressions):
    """Recording rules that make the metrics of the input series, and OWN if the expressions ask for what the user chooses."""
    own = OWN if any("own_metric" in expression for expression in expressions) else []
    for name in sorted({*names, *own}):
        family = re.sub("_(bucket|sum|count)$", "", name)
        choices = {label: VALUES.get(label, ["0"]) for label in DOCUMENTED.get(name, DOCUMENTED.get(family, []))}
        choices.update({label: sorted({*choices.get(label, []), *values}) for label, values in labels_asked(name, expressions).items()})
        if name.endswith("_bucket"):
            choices["le"] = VALUES["le"]
        for values in itertools.product(*choices.values()):
            yield {"record": name, "expr": _source(name), "labels": dict(zip(choices, values))}
