"""What the page says of a job: each sentence, and the status in which it is true. The scripts of the page, in a real browser."""

import copy

NOW = 1_795_290_153_370
RANK = {"role": "trainer", "instance": "rep_3"}


def workers(*states):
    """A rank for each state."""
    up = {"running", "hung", "idle", "starting"}
    return [
        {"role": "trainer", "instance": f"rep_{rank}", "process": "0", "state": state, "up": state in up, "restarts": 0}
        for rank, state in enumerate(states)
    ]


WELL = {
    "now_ms": NOW,
    "health": {"state": "running", "since_ms": NOW - 300_000, "exit_code": None, "reasons": []},
    "workers": workers(*["running"] * 4),
    "verdicts": {"stragglers": [], "hangs": [], "ranks": [], "judged": [{"role": "trainer", "ranks": 4, "measured": 12, "needed": 12, "undecided": False}]},
    "not_finite": [],
    "throughput": {"name": "my_app_steps_total", "now": 100, "last_10m": 100, "slowest": None},
    "progress": None,
    "goodput": None,
    "history": {"oldest_ms": NOW - 240_000},
}
STRAGGLER = {**RANK, "phase": "data", "seconds_per_step": 0.1, "step_seconds": 0.5, "waiting": 3, "since_ms": NOW, "text": "trainer rep_3: slow"}
SLOWEST = {**RANK, "now": 2.5, "median": 8.25}
NAN = {**RANK, "name": "my_app_loss", "value": "NaN", "labels": {"part": "a"}, "step": 1301, "since_ms": NOW}
DIED = {**RANK, "kind": "died", "text": "trainer rep_3 died: SIGKILL (it was killed; by whom?); in data, step 812", "process": "0", "since_ms": NOW}
FAILED = {"kind": "failed", "text": "the command ended with exit code 3", "role": None, "instance": None, "process": None, "since_ms": None}
JUDGED = WELL["verdicts"]["judged"][0]


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


def over(state, code, *reasons):
    """Without ranks: they have ended."""
    ended = {"health__state": state, "health__exit_code": code, "health__reasons": list(reasons), "workers": workers("exited")}
    return status(**ended)


SPEED = "speedTile(status)[1].split('\\n').at(-1)"
TROUBLES = "troublesOf(status).map(({ text }) => text)"
TABLE = [
    ("describe(status)", status(), "all workers are well"),
    ("describe(status)", status(workers=workers("running", "starting")), "1 of 2 starting"),
    (
        "describe(status)",
        status(workers=workers("running", "idle")),
        "none died or hangs; 1 of 2 idle: their metrics have not changed for a minute or longer",
    ),
    ("describe(status)", status(health__state="waiting", workers=[]), "no worker has started yet"),
    ("describe(status)", over("finished", 0), ""),
    ("stateText(status.health)", over("finished", 0), "Finished, exit 0"),
    ("stateText(status.health)", over("finished", None), "Finished"),
    ("stateText(status.health)", over("failed", 3, FAILED), "Failed, exit 3"),
    (TROUBLES, status(), []),
    (TROUBLES, over("failed", 3, FAILED), []),
    (TROUBLES, over("failed", 3, FAILED, DIED), [DIED["text"]]),
    ("headlineOf(troublesOf(status)[0])", over("failed", 3, DIED), "trainer rep_3 died: SIGKILL"),
    (TROUBLES, status(verdicts__stragglers=[STRAGGLER]), ["trainer rep_3: slow"]),
    (TROUBLES, status(throughput__slowest=SLOWEST), ["trainer rep_3 is slower than the others: 2.5 /s, the median is 8.25 /s"]),
    (TROUBLES, status(not_finite=[NAN]), ["my_app_loss part=a is NaN on trainer rep_3 since step 1,301"]),
    # The worst first.
    (
        TROUBLES,
        status(not_finite=[{**NAN, "labels": {}, "step": None}], verdicts__stragglers=[STRAGGLER], health__reasons=[DIED], health__state="degraded"),
        [DIED["text"], "my_app_loss is NaN on trainer rep_3", "trainer rep_3: slow"],
    ),
    # Whether ranks are equally fast is said only if it is known, of several ranks, and not beside one that died or hangs.
    (SPEED, status(), "all ranks are equally fast"),
    (SPEED, status(verdicts__judged=[{**JUDGED, "measured": 4}]), "measuring the ranks, 4 of 12"),
    (SPEED, status(verdicts__judged=[{**JUDGED, "undecided": True}]), "one of the ranks may be slower"),
    (SPEED, status(verdicts__judged=[]), "my_app_steps_total, 100 % of the last 4 min"),
    (SPEED, status(workers=workers("running"), verdicts__judged=[{**JUDGED, "ranks": 1}]), "my_app_steps_total, 100 % of the last 4 min"),
    (SPEED, status(workers=workers(*["running"] * 3, "died")), "my_app_steps_total, 100 % of the last 4 min"),
    (SPEED, status(workers=workers(*["running"] * 3, "hung")), "my_app_steps_total, 100 % of the last 4 min"),
    (SPEED, status(workers=workers(*["running"] * 5)), "my_app_steps_total, 100 % of the last 4 min"),
    (SPEED, status(verdicts__stragglers=[STRAGGLER]), "rep_3 is slower in data, by 20 % of a step"),
    (SPEED, status(throughput__slowest=SLOWEST), "rep_3 is slower: 2.5 /s, the median is 8.25 /s"),
    (SPEED, status(throughput=None, verdicts__judged=[]), "no counter of steps, batches, samples or tokens"),
    ("goodputTile(status)", status(), ["–", "no rank marks phases", ""]),
    (
        "goodputTile(status)",
        status(goodput={"ratio": 0.9149, "bucket_seconds": {"compute": 91.49, "data": 5, "sync": 3.5, "down": 0.01}}),
        ["91.5 %", "data 5.0 %, sync 3.5 %", ""],
    ),
    (
        "progressTile(status)",
        status(progress={"step": 533, "planned_steps": 1500, "remaining_seconds": 912}),
        ["533 of 1,500", "35 %, 15 min left", "", 533 / 1500],
    ),
    (
        "progressTile(status)",
        status(progress={"step": 1533, "planned_steps": None, "remaining_seconds": None}),
        ["step 1,533", "of an unknown number", "", None],
    ),
]
MODULES = {"health": "describe, stateText, troublesOf, headlineOf", "progress": "speedTile, progressTile", "goodput": "goodputTile"}


def test_each_sentence_is_said_where_it_is_true(job, browse):
    browser = browse(job.agent().url)
    imports = "".join(f"const {{ {names} }} = await import('/assets/{name}.js');" for name, names in MODULES.items())
    calls = ", ".join(f"((status) => {call})(arguments[0][{at}])" for at, (call, _, _) in enumerate(TABLE))
    said = browser.run(f"return (async () => {{ {imports} return [{calls}]; }})()", [given for _, given, _ in TABLE])
    for (call, given, expected), answer in zip(TABLE, said, strict=True):
        assert answer == expected, (call, given)
