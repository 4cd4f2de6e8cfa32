"""Rules for every dashboard: those of grafana/dashboard-linter, and more.

CI also runs the linter itself (.ci/dashboards); the rules here need neither Go nor a network, and also cover annotations, tables and heatmaps.
A rule is a function from a board, as JSON, to the problems that it finds, one sentence each. `RULES` has all rules.
"""

import re

SELECTOR = re.compile(r'([A-Za-z_:][\w:]*)?\{((?:[^{}"]|"[^"]*")*)\}(\[[^\]]*\])?')
MATCHER = re.compile(r'(\w+)\s*(=~|!=|!~|=)\s*"([^"]*)"')
WORD = re.compile(r'"[^"]*"|\[[^\]]*\]|[A-Za-z_][\w:]*|[0-9][\w.]*|\S')
OPERATORS = {"and", "or", "unless", "bool", "by", "on", "ignoring", "without", "group_left", "group_right", "offset"}
CLAUSES = {"by", "on", "ignoring", "without", "group_left", "group_right"}
# Torchelastic's histograms may be shown over the whole run, and so may deaths: their events are too rare for rates.
COUNTERS = re.compile("^(?!persia_worker_deaths_total$).*_total$|^(?!torchelastic_).*_(bucket|sum|count)$|^nan_grad_skipped$")
RATES = ("rate", "irate", "increase")
# The whole expression is within the parentheses: `or` binds less than `unless`.
UNLESS_ENDED = re.compile(r"\(.*\) unless on \(job\) \(max by \(job\) \(persia_exec_running\{")
# A job's state leaves its parts out of ended jobs, whose exit code counts instead.
STATE = re.compile(r"\(.*\) unless on \(job\) \(max by \(job\) \(persia_exec_running\{.* or 0 \+ 0 \* \(max by \(job\) \(last_over_time\(persia_exec_exit_code\{")
UNITS = {"none", "short", "percentunit", "s", "bytes", "binBps", "cps", "ops", "reqps", "celsius", "hertz"}  # the units of the linter's list that the boards use
VARIABLES = {"job": "Job", "instance": "Instance"}
GRAFANAS_OWN = {"__rate_interval", "__range", "__interval", "__interval_ms", "__url_time_range", "__data"}
# Their rows compare jobs; each row of the others is of one job.
OF_ALL_JOBS = {"persia-fleet", "persia-benchmark", "persia-exporter"}
# Labels of which a job has one value for each rank, host or device, and the choice of a few of them.
MEMBERS = {"instance", "ip_addr", "gpu", "process"}
FEW = re.compile(r"\) and (topk|bottomk) by \((job)?\) \(\d, (min|max|avg)_over_time\(")
KEPT = "?${job:queryparam}&${instance:queryparam}&${__url_time_range}"

RULES = []


def rule(function):
    RULES.append(function)
    return function


def panels(board):
    """Panels that show data."""
    return [panel for panel in board["panels"] if panel["type"] not in ("row", "text")]


def targets(board):
    """Each panel with each of its targets."""
    return [(panel, target) for panel in panels(board) for target in panel.get("targets", [])]


def expressions(board):
    """All queries of panels and annotations, each with a name."""
    asked = [(f"{panel['title']} {target['refId']}", target["expr"]) for panel, target in targets(board)]
    return asked + [(one["name"], one["expr"]) for one in board["annotations"]["list"]]


def selectors(expression):
    """Name, matchers, range and preceding words of each selector with braces."""
    for found in SELECTOR.finditer(expression):
        matchers = {label: (operator, value) for label, operator, value in MATCHER.findall(found[2])}
        yield found[1] or "", matchers, found[3] or "", expression[: found.start()]


def bare_names(expression):
    """Metrics without matchers."""
    words = WORD.findall(re.sub(r"\$\w+", " 0 ", SELECTOR.sub(" 0 ", expression)))
    inside_clause = False
    for at, word in enumerate(words):
        following = words[at + 1] if at + 1 < len(words) else ""
        if word in CLAUSES and following == "(":
            inside_clause = True
        elif word == ")":
            inside_clause = False
        elif re.match("[A-Za-z_]", word) and word not in OPERATORS and following not in CLAUSES | {"("} and not inside_clause:
            yield word


def rows(board):
    """Each row with its panels."""
    found = []
    for panel in board["panels"]:
        if panel["type"] == "row":
            found.append((panel, []))
        else:
            found[-1][1].append(panel)
    return found


def grouping(expression):
    """The labels by which the series of an expression differ, or None if it does not group them."""
    if re.match(r"\(*(sum|count|min|max|avg|quantile) ?\((?!.*\) by)", expression):
        return set()
    found = re.search(r"\bby \(([^)]*)\)", expression)
    return {label.strip() for label in found[1].split(",")} - {"le", ""} if found else None


def variables(board, kind="query"):
    return {one["name"]: one for one in board["templating"]["list"] if one["type"] == kind}


# --- the linter's


@rule
def has_a_variable_for_its_data_source(board):
    found = variables(board, "datasource")
    if list(found) != ["datasource"] or found["datasource"]["label"] != "Data source" or found["datasource"]["query"] != "prometheus":
        yield f"its data source variables are {[(one['name'], one.get('label')) for one in found.values()]}"


@rule
def has_variables_for_job_and_instance(board):
    found = variables(board)
    for name, label in VARIABLES.items():
        one = found.get(name, {})
        # Boards of a job begin with one job, that of a rank with one rank: with All, Grafana begins with all of them.
        with_all = board["uid"] in OF_ALL_JOBS if name == "job" else board["uid"] != "persia-rank"
        if (one.get("label"), one.get("multi"), one.get("includeAll"), one.get("allValue")) != (label, True, with_all, ".+"):
            yield f"variable {name}: {one}"


@rule
def reloads_variables_when_the_time_changes(board):
    yield from (f"variable {name} has refresh {one['refresh']}" for name, one in variables(board).items() if one["refresh"] != 2)


@rule
def asks_for_variables_by_label_values(board):
    for name, one in variables(board).items():
        found = re.fullmatch(r"label_values\((.+), (\w+)\)", one["query"]["query"])
        if not found or found[2] != {"metric": "__name__", "own_metric": "__name__"}.get(name, name):
            yield f"variable {name} asks {one['query']['query']!r}"
        elif name not in ("job", "team") and ["job" in matchers for _, matchers, _, _ in selectors(found[1])] != [True]:
            yield f"variable {name} does not depend on the jobs that are chosen"


@rule
def lists_jobs_and_ranks_by_one_metric(board):
    asked = {name: one["query"]["query"] for name, one in variables(board).items() if name in VARIABLES}
    if asked != {"job": "label_values(persia_job_info, job)", "instance": 'label_values(persia_job_info{job=~"$job"}, instance)'}:
        yield f"it lists {asked}"


@rule
def uses_its_data_source_variable_everywhere(board):
    users = [(one["name"], one) for one in [*variables(board).values(), *board["annotations"]["list"]]]
    users += [(panel["title"], panel) for panel in board["panels"]]
    users += [(f"{panel['title']} {target['refId']}", target) for panel, target in targets(board)]
    for name, user in users:
        if user.get("datasource") != {"type": "prometheus", "uid": "$datasource"}:
            yield f"{name}: data source {user.get('datasource')}"


@rule
def has_titles_and_descriptions(board):
    for panel in board["panels"]:
        if not panel.get("title") or not (panel.get("description") or panel["type"] == "row"):
            yield f"panel {panel['id']}: title {panel.get('title')!r}, description {panel.get('description')!r}"


@rule
def has_units(board):
    for panel in panels(board):
        if panel["fieldConfig"]["defaults"].get("unit") not in UNITS:
            yield f"{panel['title']}: unit {panel['fieldConfig']['defaults'].get('unit')!r}"


@rule
def has_targets(board):
    yield from (f"{panel['title']} asks nothing" for panel in panels(board) if not panel.get("targets"))


@rule
def filters_by_job(board):
    yield from _filters_by(board, "job")


@rule
def filters_by_instance(board):
    yield from _filters_by(board, "instance")


def _filters_by(board, label):
    for name, expression in expressions(board):
        yield from (f"{name}: {bare} has no matchers" for bare in bare_names(expression))
        for metric, matchers, _, _ in selectors(expression):
            # An alert about a whole job has no instance.
            about_alerts = label == "instance" and metric in ("ALERTS", "ALERTS_FOR_STATE")
            if matchers.get(label) != ("=~", f"${label}") and not about_alerts:
                yield f"{name}: {metric} is not filtered by ${label}"


@rule
def takes_rates_over_the_rate_interval(board):
    for name, expression in expressions(board):
        for metric, _, window, before in selectors(expression):
            if window and window != "[$__rate_interval]" and re.search(r"\bi?rate\($", before):
                yield f"{name}: rate of {metric} over {window}"


@rule
def shows_counters_as_rates(board):
    for name, expression in expressions(board):
        for metric, _, window, before in selectors(expression):
            if COUNTERS.search(metric) and not (window and re.search(rf"\b({'|'.join(RATES)})\($", before)):
                yield f"{name}: {metric} is a counter, and not directly in {', '.join(RATES)}"


@rule
def cannot_be_edited(board):
    if board["editable"] is not False:
        yield f"editable is {board['editable']}"


# --- beyond the linter


@rule
def has_a_fixed_uid_and_no_id(board):
    if not re.fullmatch("persia-[a-z]+", board["uid"]) or len(board["uid"]) > 40 or board["id"] is not None:
        yield f"uid {board['uid']!r}, id {board['id']!r}"


@rule
def has_the_tag(board):
    if "persia" not in board["tags"]:
        yield f"tags {board['tags']}"


@rule
def can_be_provisioned(board):
    """A board exported for sharing asks for its data source, which provisioning cannot answer."""
    if "__inputs" in board or "${DS_" in str(board):
        yield "it has inputs"


@rule
def goes_from_general_to_special(board):
    titles = [panel["title"] for panel in board["panels"] if panel["type"] == "row"]
    if not titles[0].startswith("Overview") or titles[-1] != "About this board" or board["panels"][0]["type"] != "row":
        yield f"rows {titles}"
    second_row = [panel["type"] for panel in board["panels"]].index("row", 1)
    if {panel["type"] for panel in board["panels"][1:second_row]} != {"stat"}:
        yield "the overview is not made of numbers"


@rule
def has_thresholds_that_rise(board):
    for panel in panels(board):
        steps = [step["value"] for step in panel["fieldConfig"]["defaults"].get("thresholds", {}).get("steps", [])]
        if not steps or steps[0] is not None or steps[1:] != sorted(steps[1:]):
            yield f"{panel['title']}: thresholds {steps}"


@rule
def is_not_red_by_default(board):
    """Red is for what someone has to look at."""
    for panel in panels(board):
        if panel["type"] == "stat" and panel["fieldConfig"]["defaults"]["thresholds"]["steps"][0]["color"] == "red":
            yield f"{panel['title']} is red at its lowest value"


@rule
def warns_of_no_job_that_has_ended(board):
    """A gateway keeps the values of a job that has ended: they would warn, and an age would grow, for ever. An increase ends by itself."""
    for panel, target in targets(board):
        warns = any(step["color"] not in ("green", "text") for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"])
        age = "push" in target["expr"] and "time() -" in target["expr"]
        careful = UNLESS_ENDED.match(target["expr"]) or STATE.search(target["expr"])
        if panel["type"] == "stat" and (warns or age) and "increase(" not in target["expr"].partition(" unless on (job) ")[0] and not careful:
            yield f"{panel['title']} shows jobs that have ended"


@rule
def names_its_source(board):
    texts = [panel for panel in board["panels"] if panel["type"] == "text"]
    if "Source: " not in board["description"] or not any("persia-metrics-agent" in panel["options"]["content"] for panel in texts):
        yield "description or text do not say what feeds it"


@rule
def fits_phones_and_walls(board):
    """No collapsed rows, no narrow or overlapping panels, legends below, automatic refresh."""
    taken = {}
    for panel in board["panels"]:
        place = panel["gridPos"]
        if panel.get("collapsed") or place["w"] < 4 or place["h"] < (1 if panel["type"] == "row" else 4) or place["x"] + place["w"] > 24:
            yield f"{panel['title']}: place {place}, collapsed: {panel.get('collapsed')}"
        for cell in [(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])]:
            if cell in taken:
                yield f"{panel['title']} lies over {taken[cell]}"
                break
            taken[cell] = panel["title"]
        if panel.get("options", {}).get("legend", {}).get("placement", "bottom") != "bottom":
            yield f"{panel['title']}: legend beside"
    if not board.get("refresh"):
        yield "it does not refresh"


@rule
def repeats_rows_by_job(board):
    """Unless the board compares jobs, so that the row has the job's name. The last row is about the board."""
    repeats = {head.get("repeat") for head, _ in rows(board)[:-1]}
    named = all(("$job" in head["title"]) == ("repeat" in head) for head, _ in rows(board))
    if repeats != ({None} if board["uid"] in OF_ALL_JOBS else {"job"}) or not named:
        yield f"rows {[(head['title'], head.get('repeat')) for head, _ in rows(board)]}"


@rule
def names_lines_by_what_tells_them_apart(board):
    """Each legend has the labels by which its query groups, and not the job where the row has its name."""
    for head, of_row in rows(board):
        of_one_job = head.get("repeat") == "job"
        for panel in of_row:
            for target in panel.get("targets", []):
                legend, shown = target["legendFormat"], set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
                if panel["type"] in ("table", "heatmap") or legend == "__auto":
                    continue
                if not legend or (of_one_job and "job" in shown):
                    yield f"{panel['title']} {target['refId']}: legend {legend!r} in a row of {'one job' if of_one_job else 'several jobs'}"
                by = grouping(target["expr"])
                if by is None:
                    by = shown | ({"job"} - shown if not of_one_job else set())
                missing = by - shown - ({"job"} if of_one_job else set()) - {"type"}
                if not shown <= by or missing:
                    yield f"{panel['title']} {target['refId']}: legend {legend!r} of series by {sorted(by)}"


@rule
def has_few_lines(board):
    """Of hundreds of ranks, hosts or devices, a chart shows a band or those that are worst. The board of a rank, and that of what benchmarks send,
    show those that are chosen."""
    for panel, target in targets(board):
        by = grouping(target["expr"])
        several = (by is None or by & MEMBERS) and target["legendFormat"] != "__auto"
        if board["uid"] != "persia-rank" and panel["type"] not in ("table", "heatmap") and several and not FEW.search(target["expr"]):
            yield f"{panel['title']} {target['refId']}: a line for each of {sorted(by) if by else 'all series'}"


@rule
def has_few_panels(board):
    if board["uid"] == "persia-job" and len([panel for panel in board["panels"] if panel["type"] != "row"]) > 20:
        yield "more than 20 panels"


@rule
def gives_each_target_a_legend_of_its_own(board):
    for panel in panels(board):
        legends = [target["legendFormat"] for target in panel.get("targets", [])]
        if panel["type"] != "table" and len(set(legends)) != len(legends):
            yield f"{panel['title']}: legends {legends}"


@rule
def gives_panels_and_targets_ids_of_their_own(board):
    ids = [panel["id"] for panel in board["panels"]]
    if len(set(ids)) != len(ids):
        yield f"panel ids {ids}"
    for panel in panels(board):
        refs = [target["refId"] for target in panel.get("targets", [])]
        if len(set(refs)) != len(refs):
            yield f"{panel['title']}: refIds {refs}"


@rule
def uses_variables_that_exist(board):
    known = {one["name"] for one in board["templating"]["list"]} | GRAFANAS_OWN
    for panel in board["panels"]:
        for used in re.findall(r"\$\{?([a-z_]\w*)", str({key: value for key, value in panel.items() if key != "datasource"})):
            if used not in known:
                yield f"{panel['title']}: no variable {used}"
        if panel.get("repeat", "job") not in known:
            yield f"{panel['title']}: no variable {panel['repeat']} to repeat by"


@rule
def marks_events(board):
    marks = {one["name"]: one["enable"] for one in board["annotations"]["list"] if "persia_event_last_timestamp_seconds" in one["expr"]}
    if marks != {"Events": True, "Checkpoints": False}:
        yield f"annotations of events: {marks}"


def links_in(panel):
    """The addresses of a panel's own links, those of its text, and those of the cells of a table."""
    own = [one["url"] for one in panel.get("links", [])]
    if panel["type"] == "text":
        own += re.findall(r"\]\(([^)]*)\)", panel["options"]["content"])
    overrides = panel.get("fieldConfig", {}).get("overrides", [])
    cells = [one["url"] for way in overrides for given in way["properties"] if given["id"] == "links" for one in given["value"]]
    return own, cells


def broken_links(boards):
    """Broken links between boards, also of panels, texts and cells, and boards without a link from another board."""
    for uid, board in boards.items():
        urls = [one["url"] for one in board["links"]]
        found = [links_in(panel) for panel in board["panels"]]
        of_panels, of_cells = ([url for pair in found for url in pair[kind]] for kind in (0, 1))
        for url in urls + of_panels + of_cells:
            if url.removeprefix("/d/").partition("?")[0] not in boards:
                yield f"{uid}: {url} leads nowhere"
        yield from (f"{uid}: {url} loses what is chosen" for url in of_panels if not url.endswith(KEPT))
        yield from (f"{uid}: {url} loses job or time" for url in of_cells if "job" not in url or not url.endswith("&${__url_time_range}"))
        missing = set(boards) - {uid} - {url.removeprefix("/d/") for url in urls}
        if missing:
            yield f"{uid}: no link to {sorted(missing)}"
        yield from (f"{uid}: {one['title']} loses what is chosen" for one in board["links"] if not (one["keepTime"] and one["includeVars"]))


def shown_twice(boards):
    """Panels of the same title, and expressions that panels of the same kind draw, on the same or on two boards."""
    seen = {}
    for uid, board in boards.items():
        for panel in panels(board):
            named = [(panel["type"], target["expr"]) for target in panel.get("targets", [])]
            for what in [panel["title"], *named]:
                if what in seen:
                    yield f"{uid}: {panel['title']} is on {seen[what]}, too"
                seen[what] = f"{uid}: {panel['title']}"


def metrics(boards):
    """The names of all metrics that the boards ask for."""
    asked = [expression for board in boards.values() for _, expression in expressions(board)]
    asked += [one["query"]["query"] for board in boards.values() for one in variables(board).values()]
    return {name for expression in asked for name, _, _, _ in selectors(expression) if name}
