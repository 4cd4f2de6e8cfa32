"""agent/METRICS.md describes all metrics of the agent itself, and no others."""

import re

from conftest import ROOT
from servers import wait_until

NAME = r"persia_(?:(?:agent|cgroup|event|events|exec|filesystem|gauge|goodput|infiniband|job|metrics|network|pressure|process|rank|worker)_[a-z_]+|straggler|hang)"
ROW = re.compile(rf"^\| `({NAME})` \| (\w+) \| ((?:`\w+`(?:, )?)*) ?\| (.+) \|$", re.M)
IDENTITY = {"job", "instance", "ip_addr", "role"}


def table():
    text = (ROOT / "agent/METRICS.md").read_text()
    rows = {name: (kind, frozenset(re.findall(r"\w+", labels))) for name, kind, labels, _ in ROW.findall(text)}
    assert len(rows) == len(re.findall(r"^\| `persia_", text, re.M)), "a malformed or repeated row"
    return rows


def shown(text):
    """Type and labels of each family."""
    families = {name: [kind, set()] for name, kind in re.findall(rf"^# TYPE ({NAME}) (\w+)$", text, re.M)}
    for series, labels in re.findall(rf"^({NAME})\{{(.*)\}} ", text, re.M):
        family = series if series in families else re.sub("_(bucket|sum|count)$", "", series)
        families[family][1] |= set(re.findall(r'(\w+)="', labels)) - IDENTITY - {"le"}
    return {name: (kind, frozenset(labels)) for name, (kind, labels) in families.items()}


def test_each_family_on_metrics_is_in_the_table(job, gateway):
    rows = table()
    beside = job.exec_worker()
    beside.tell("count my_app batches 1")
    gateway.wait_for("persia_exec_running", 1)
    wait_until(lambda: beside.metrics().one("persia_agent_render_duration_seconds_count") > 0, "a second scrape")
    families = shown(beside.metrics().text)
    assert len(families) > 15
    for name, about in families.items():
        assert rows.get(name) == about, f"{name}: the agent shows {about}, METRICS.md has {rows.get(name)}"
    assert beside.leave() == 0


def test_the_table_has_what_the_agent_can_show_and_nothing_else():
    sources = [path.read_text() for suffix in ("cc", "h") for path in (ROOT / "agent").rglob(f"*.{suffix}")]
    names = {name for text in sources for name in re.findall(rf'"({NAME})"', text)}
    assert set(table()) == names
