"""What the page itself says of a job: each sentence, and the status in which it is true. The scripts of the page, in a real browser.

How the job is, what is wrong, and how its ranks compare is said by the agent: tests/unit/web/sentences_test.cc has those sentences.
"""

import copy
import re

NOW = 1_795_290_153_370
AT = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"  # of another day than today
RANK = {"role": "trainer", "instance": "rep_3"}


def workers(*states):
    """A rank for each state."""
    up = {"running", "hung", "idle", "starting"}
    return [
        {"role": "trainer", "instance": f"rep_{rank}", "process": "0", "is_rank": True, "state": state, "up": state in up, "restarts": 0}
        for rank, state in enumerate(states)
    ]


WELL = {
    "now_ms": NOW,
    "health": {"state": "running", "title": "Running", "text": "all workers are well", "since_ms": NOW - 300_000, "exit_code": None, "reasons": []},
    "workers": workers(*["running"] * 4),
    "verdicts": {"stragglers": [], "hangs": [], "ranks": [], "judged": [], "text": "all ranks are equally fast"},
    "throughput": {"name": "my_app_steps_total", "now": 100, "last_10m": 100, "slowest": None},
    "progress": None,
    "goodput": None,
    "restarts": 0,
    "history": {"oldest_ms": NOW - 240_000},
}


def reason(kind, text):
    return {**RANK, "kind": kind, "text": text, "headline": text, "process": "0", "since_ms": NOW}


DIED = reason("died", "trainer rep_3 died: SIGKILL")
NAN = reason("not_finite", "my_app_loss is NaN on trainer rep_3, since step 1301")
SLOW = reason("slow", "trainer rep_3: slow")
LOST = reason("lost", "3 values of train/loss lost on trainer rep_3: a counter takes no NaN")


def status(**changes):
    """WELL with other members; `a__b`: member b of member a."""
    made = copy.deepcopy(WELL)
    for name, value in changes.items():
        *path, last = name.split("__")
        at = made
        for member in path:
            at = at[member]
        at[last] = value
    return made


def goodput(restarts=0, redone_steps=0, mean_time_to_repair_seconds=None, seconds_without_phases=0, **buckets):
    return {
        "ratio": buckets["compute"] / sum(buckets.values()),
        "bucket_seconds": buckets,
        "restarts": restarts,
        "redone_steps": redone_steps,
        "mean_time_to_repair_seconds": mean_time_to_repair_seconds,
        "seconds_without_phases": seconds_without_phases,
    }


SPEED = "speedTile(status)[1].split('\\n')"
LAUNCHER = {**workers("idle")[0], "role": "launcher", "is_rank": False}
LOADER = {**workers("died")[0], "process": "1", "is_rank": False}
SPEEDS = {"samples_per_second": 307, "tokens_per_second": None, "steps_per_second": 20.5}
SLOW_PROGRESS = {"name": "my_app_steps_total", "now": 70, "last_10m": 100, "slowest": None}
UNCOUNTED = "call count_steps() in each step, or exec --instrument=torch"
UNMARKED = "mark phases by phase(name), or exec --instrument=torch"
TABLE = [
    # The title of the tab, if something is wrong.
    ("summary(status)", status(health__reasons=[SLOW]), "1 slow"),
    ("summary(status)", status(health__reasons=[DIED, NAN], workers=workers("died", "hung", "running")), "1 died, 1 hung, 1 NaN"),
    ("summary(status)", status(health__state="failed", health__reasons=[DIED], workers=workers("died", "died")), "failed, 2 died"),
    ("shortened(status.job)", status(job="a" * 110), "a" * 110),
    ("shortened(status.job)", status(job="a" * 111), "a" * 109 + "…"),
    ("describeRest(status, status.health.reasons, [])", status(health__state="degraded", health__reasons=[DIED], workers=workers("died", "died")), "2 more died"),
    ("describeRest(status, status.health.reasons, status.health.reasons)", status(health__reasons=[NAN]), ""),
    ("describeRest(status, status.health.reasons, [])", status(health__reasons=[LOST]), "1 more lost"),
    ("timeText(status, false)", status(), f"for 5 min, since {AT}"),
    ("timeText(status, true)", status(), "running for 5 min"),
    ("timeText(status, false)", status(health__state="finished"), f"at {AT}"),
    ("timeText(status, true)", status(health__state="failed"), f"failed at {AT}"),
    ("sinceOf(status.health.reasons[0])", status(health__reasons=[SLOW]), f" since {AT}"),
    ("sinceOf(status.health.reasons[0])", status(health__reasons=[DIED]), f" at {AT}"),
    ("sinceOf(status.health.reasons[0])", status(health__reasons=[NAN]), f" at {AT}"),
    ("sinceOf(status.health.reasons[0])", status(health__reasons=[{**SLOW, "since_ms": None}]), ""),
    # A launcher is no rank, nor is a further process of a rank.
    ("workersTile(status)", status(), ["4 of 4 up", "none died or hung, no restarts", ""]),
    ("workersTile(status)", status(health__state="finished", workers=workers("exited", "exited")), ["2 ended", "none died or hung, no restarts", ""]),
    ("workersTile(status)", status(health__state="failed", workers=workers("died", "running")), ["1 of 2 up", "1 died, no restarts", "bad"]),
    ("workersTile(status)", status(workers=[]), ["none yet", "import persia_metrics, and make a metric", "unknown"]),
    ("workersTile(status)", status(workers=[*workers("running", "idle"), LAUNCHER]), ["2 of 2 up", "1 idle, no restarts", ""]),
    ("workersTile(status)", status(workers=[*workers("running", "running"), LOADER]), ["2 of 2 up", "1 died, no restarts", "bad"]),
    ("workersTile(status)", status(restarts=1, workers=workers("starting")), ["1 of 1 up", "1 starting, 1 restart", ""]),
    ("workersTile(status)", status(workers=[*workers("died", "died"), {**LAUNCHER, "state": "died"}]), ["0 of 2 up", "2 died, no restarts", "bad"]),
    (SPEED, status(), ["my_app_steps_total, 100 % of the last 4 min", "all ranks are equally fast"]),
    (SPEED, status(verdicts__text=""), ["my_app_steps_total, 100 % of the last 4 min"]),
    (SPEED, status(verdicts__text="", throughput=SLOW_PROGRESS), ["my_app_steps_total, 70 % of the last 4 min"]),
    (SPEED, status(verdicts__text="", history={"oldest_ms": NOW - 60_000}), ["my_app_steps_total"]),
    (SPEED, status(throughput=None, verdicts__text=""), [UNCOUNTED]),
    ("speedTile(status)", status(throughput=None, health__state="waiting"), ["not known", "no rank runs yet", "unknown"]),
    ("speedTile(status)", status(throughput=None, health__state="finished", verdicts__text=""), ["not known", UNCOUNTED, "unknown"]),
    (
        "speedTile(status)",
        status(throughput=None, health__state="finished", verdicts__text="rep_3 was the slowest rank"),
        ["not known", f"{UNCOUNTED}\nrep_3 was the slowest rank", "unknown"],
    ),
    ("speedTile(status)", status(health__state="finished", verdicts__text=""), ["100 /s", "my_app_steps_total of all ranks together, in the last 4 min", ""]),
    (
        "speedTile(status)",
        status(health__state="finished", verdicts__text="rep_3 was the slowest rank", progress=SPEEDS),
        ["307 samples/s", "20.5 steps/s, in the last 4 min\nrep_3 was the slowest rank", ""],
    ),
    ("goodputTile(status)", status(), ["not known", UNMARKED, "unknown"]),
    (
        "goodputTile(status)",
        status(goodput={"ratio": 0.9149, "bucket_seconds": {"compute": 91.49, "data": 5, "sync": 3.5, "down": 0.01}}),
        ["91.5 %", "data 5.0 %, sync 3.5 %", ""],
    ),
    ("goodputTile(status)", status(goodput={"ratio": 0.1, "bucket_seconds": {"compute": 1, "other": 9}}), ["10.0 %", "other 90.0 %", ""]),
    ("goodputTile(status)", status(goodput={"ratio": 1, "bucket_seconds": {"compute": 1}}), ["100.0 %", "no time lost", ""]),
    ("describeGoodput(status.goodput)", status(goodput=goodput(compute=1)), "The ranks computed steps that are kept in 100.0 % of their time: no restarts, no steps redone."),
    (
        "describeGoodput(status.goodput)",
        status(goodput=goodput(restarts=2, redone_steps=None, mean_time_to_repair_seconds=41, seconds_without_phases=60, compute=1, other=9)),
        "The ranks computed steps that are kept in 10.0 % of their time: 2 restarts, redone steps unknown, mean time to repair 41 s. "
        "In 90.0 % of it they were in none of their phases (other). Without 60 s of ranks that mark no phases.",
    ),
    (
        "progressTile(status)",
        status(progress={"step": 533, "planned_steps": 1500, "remaining_seconds": 912}),
        ["533 of 1,500", "35 %, 15 min left", "", 533 / 1500],
    ),
    (
        "progressTile(status)",
        status(progress={"step": 1500, "planned_steps": 1500, "remaining_seconds": 0}),
        ["1,500 of 1,500", "100 %, the last step is done", "", 1],
    ),
    (
        "progressTile(status)",
        status(progress={"step": 1533, "planned_steps": None, "remaining_seconds": None}),
        ["step 1,533", "set_total_steps(n) gives the time that is left", "", None],
    ),
    ("progressTile(status)", status(), ["not known", UNCOUNTED, "unknown", None]),
    ("progressTile(status)", status(health__state="waiting"), ["not known", "no rank runs yet", "unknown", None]),
    ("goodputTile(status)", status(health__state="waiting"), ["not known", "no rank runs yet", "unknown"]),
    ("keptText(status)", status(kept_page=None), f"The agent has ended with the job. Shown are the last values, of {AT}."),
    (
        "keptText(status)",
        status(kept_page="/home/me/dlrm.html"),
        f"The agent has ended with the job, and keeps this page in /home/me/dlrm.html. Shown are the last values, of {AT}.",
    ),
    ("describeWaits(status.verdicts)", status(), "what a step of each rank consists of"),
    ("describeWaits(status.verdicts)", status(verdicts__stragglers=[RANK]), "rep_3 holds the others up"),
    ("describeWaits(status.verdicts)", status(verdicts__stragglers=[RANK, {**RANK, "instance": "rep_1"}]), "rep_3, rep_1 hold the others up"),
    ("describeWaits(status.verdicts)", status(verdicts__hangs=[RANK]), "what a step of each rank consists of"),
]
MODULES = {
    "health": "summary, shortened, describeRest, timeText, sinceOf, keptText",
    "progress": "speedTile, progressTile",
    "goodput": "goodputTile, describeGoodput",
    "status": "workersTile",
    "waits": "describeWaits",
}


def test_each_sentence_is_said_where_it_is_true(job, browse):
    browser = browse(job.agent().url)
    imports = "".join(f"const {{ {names} }} = await import('/assets/{name}.js');" for name, names in MODULES.items())
    calls = ", ".join(f"((status) => {call})(arguments[0][{at}])" for at, (call, _, _) in enumerate(TABLE))
    said = browser.run(f"return (async () => {{ {imports} return [{calls}]; }})()", [given for _, given, _ in TABLE])
    for (call, given, expected), answer in zip(TABLE, said, strict=True):
        is_same = re.fullmatch(expected, answer) if isinstance(expected, str) and "\\d" in expected else answer == expected
        assert is_same, (call, given, answer)
