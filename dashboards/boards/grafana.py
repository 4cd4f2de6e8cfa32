"""Grafana's dashboard model, as far as the boards use it: panels, rows, boards.

A panel is a dict without id and place, which `board` adds. Panels flow from left to right in lines of 24 columns.
"""

DATASOURCE = {"type": "prometheus", "uid": "$datasource"}
COLUMNS = 24
GREEN = [(None, "green")]  # no warnings


def query(expr, legend, instant=False, form="time_series"):
    """A target of a panel. `instant`: the newest value only. `form`: time_series, heatmap or table."""
    target = {"datasource": DATASOURCE, "editorMode": "code", "expr": expr, "format": form, "legendFormat": legend}
    return {**target, "instant": instant, "range": not instant}


def override(name, **properties):
    """Other properties of the field with this name: a line by its legend, a column by its title. `custom__x` is the property custom.x."""
    listed = [{"id": of.replace("__", "."), "value": value} for of, value in properties.items()]
    return {"matcher": {"id": "byName", "options": name}, "properties": listed}


def texts_of_values(texts):
    """Mappings of values. `texts`: the meaning of values, as {value: (text, color)}."""
    mapping = {str(value): {"color": color, "index": at, "text": text} for at, (value, (text, color)) in enumerate(texts.items())}
    return [{"type": "value", "options": mapping}]


def _panel(kind, title, description, unit, queries, size, thresholds=GREEN, custom=None, options=None, overrides=(), **defaults):
    steps = [{"color": color, "value": value} for value, color in thresholds]
    field = {"unit": unit, "color": {"mode": "palette-classic"}, "thresholds": {"mode": "absolute", "steps": steps}, **defaults}
    if custom is not None:
        field["custom"] = custom
    targets = [{"refId": chr(ord("A") + number), **target} for number, target in enumerate(queries)]
    return {
        "type": kind,
        "title": title,
        "description": description,
        "datasource": DATASOURCE,
        "fieldConfig": {"defaults": field, "overrides": list(overrides)},
        "options": options or {},
        "targets": targets,
        "gridPos": {"w": size[0], "h": size[1]},
    }


def stat(title, description, unit, target, thresholds=GREEN, more=(), **defaults):
    """The newest value of each series as a number. `more`: further queries."""
    options = {"colorMode": "value", "graphMode": "area", "justifyMode": "auto", "orientation": "auto", "textMode": "auto"}
    options["reduceOptions"] = {"calcs": ["lastNotNull"], "fields": "", "values": False}
    color = {"mode": "thresholds"}
    return _panel("stat", title, description, unit, [target, *more], (4, 4), thresholds, options=options, color=color, **defaults)


def chart(title, description, unit, queries, size=(8, 8), thresholds=GREEN, legend_calcs=("lastNotNull",), signed=False, stacked=False, **defaults):
    """Lines over time from 0 up, or `signed`; thresholds as dashed lines. `stacked`: areas on each other."""
    custom = {"drawStyle": "line", "fillOpacity": 0, "lineInterpolation": "linear", "lineWidth": 1, "showPoints": "auto", "spanNulls": False}
    custom["thresholdsStyle"] = {"mode": "off" if thresholds is GREEN else "dashed"}
    if stacked:
        custom.update(fillOpacity=60, stacking={"mode": "normal", "group": "A"})
    legend = {"calcs": list(legend_calcs), "displayMode": "table", "placement": "bottom", "showLegend": True}
    options = {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}
    if not signed:
        defaults["min"] = 0
    return _panel("timeseries", title, description, unit, queries, size, thresholds, custom, options, **defaults)


def heatmap(title, description, expr, size=(12, 8)):
    """A histogram's buckets over time, in seconds. `expr`: its rates by `le`."""
    options = {
        "calculate": False,
        "cellGap": 1,
        "color": {"exponent": 0.5, "fill": "dark-orange", "mode": "scheme", "reverse": False, "scale": "exponential", "scheme": "Oranges", "steps": 64},
        "filterValues": {"le": 1e-9},
        "legend": {"show": True},
        "rowsFrame": {"layout": "auto"},
        "tooltip": {"mode": "single", "yHistogram": True},
        "yAxis": {"axisPlacement": "left", "unit": "s"},
    }
    return _panel("heatmap", title, description, "s", [query(expr, "{{le}}", form="heatmap")], size, options=options)


def states(title, description, target, texts, size=(12, 8)):
    """A band for each series, coloured by its value. `texts`: the meaning of values, as {value: (text, color)}."""
    custom = {"fillOpacity": 70, "lineWidth": 0}
    options = {"alignValue": "left", "mergeValues": True, "rowHeight": 0.9, "showValue": "never"}
    options["legend"] = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
    options["tooltip"] = {"mode": "single", "sort": "none"}
    color = {"mode": "thresholds"}
    return _panel("state-timeline", title, description, "none", [target], size, GREEN, custom, options, mappings=texts_of_values(texts), color=color)


def table(title, description, unit, queries, columns=(), size=(24, 8), order=(), sort=None, overrides=()):
    """The newest values, a row for each set of the labels that all expressions have.

    `queries`: expressions by the column that each fills, None to hide it; `columns`: other names for labels, None to hide one; `order`: labels and
    columns from the left; `sort`: the column by which the rows fall.
    """
    targets = [query(expr, "", instant=True, form="table") for _, expr in queries]
    values = [f"Value #{chr(ord('A') + number)}" for number in range(len(targets))] if len(targets) > 1 else ["Value"]
    columns = {"Time": None, **dict(columns), **dict(zip(values, [column for column, _ in queries]))}
    hidden = {label: True for label, name in columns.items() if name is None}
    renamed = {label: name for label, name in columns.items() if name is not None}
    fields = {name: label for label, name in renamed.items()}
    places = {fields.get(name, name): at for at, name in enumerate(order)}
    options = {"showHeader": True, "sortBy": [{"displayName": sort, "desc": True}]} if sort else {"showHeader": True}
    custom = {"align": "auto", "filterable": True}
    panel = _panel("table", title, description, unit, targets, size, custom=custom, options=options, overrides=overrides)
    panel["transformations"] = [
        {"id": "merge", "options": {}},
        {"id": "organize", "options": {"excludeByName": hidden, "indexByName": places, "renameByName": renamed}},
    ]
    return panel


def text(title, description, markdown, size=(24, 5)):
    panel = _panel("text", title, description, "none", [], size, options={"content": markdown, "mode": "markdown"})
    del panel["targets"]
    return panel


def repeated(panel, variable, most):
    """The panel once for each value of a variable, at most `most` in a row."""
    return {**panel, "repeat": variable, "repeatDirection": "h", "maxPerRow": most}


def variable(name, label, label_of, metric, all_value=".+", with_all=True, regex=""):
    """A choice among the values of a label; `metric`: the selector that lists them. Without All, Grafana begins with the first value.

    `regex`: the part of a value that is offered.
    """
    expression = f"label_values({metric}, {label_of})"
    choice = {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": expression, "refId": f"Variable-{name}"},
        "multi": True,
        "includeAll": with_all,
        "allValue": all_value,
        "options": [],
        "refresh": 2,
        "regex": regex,
        "sort": 1,
        "hide": 0,
        "skipUrlSync": False,
    }
    if with_all:
        choice["current"] = {"selected": True, "text": ["All"], "value": ["$__all"]}
    return choice


def _datasource_variable():
    usual = {"selected": False, "text": "Prometheus", "value": "Prometheus"}
    choice = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": usual, "options": []}
    return {**choice, "hide": 0, "includeAll": False, "multi": False, "refresh": 1, "regex": "", "skipUrlSync": False}


def annotation(name, expr, title, body, tags, color, enable=True):
    """Marks on all charts. The values of `expr` are times in milliseconds."""
    what = {"name": name, "datasource": DATASOURCE, "enable": enable, "hide": False, "iconColor": color, "expr": expr, "step": "10s"}
    return {**what, "useValueForTime": True, "titleFormat": title, "textFormat": body, "tagKeys": tags}


KEPT = "${job:queryparam}&${instance:queryparam}&${__url_time_range}"


def _link(url, title, **how):
    how = {"asDropdown": False, "includeVars": False, "keepTime": False, "targetBlank": False, "tags": [], **how}
    return {"type": "link", "title": title, "url": url, "icon": "dashboard", "tooltip": f"{title}, of the same jobs and time", **how}


def link(uid, title):
    """To another board, with the same jobs, instances and time range."""
    return _link(f"/d/{uid}", title, includeVars=True, keepTime=True)


def linked(panel, uid, title):
    """The panel with a link to the board that has more about it. Of a panel's link, Grafana reads the address alone."""
    return {**panel, "links": [_link(f"/d/{uid}?{KEPT}", title)]}


def link_in_text(uid, title):
    """The same in a text."""
    return f"[{title}](/d/{uid}?{KEPT})"


def links_of_cells(uid, title, **labels):
    """Of a table's column: each cell leads to a board, at the same time. `labels`: variables of that board by the column that has their value; the
    job is that of the row."""
    job = [] if "job" in labels else ["${job:queryparam}"]
    values = "&".join([*job, *(f"var-{name}=${{__data.fields.{column}}}" for name, column in labels.items()), "${__url_time_range}"])
    return [{"title": title, "url": f"/d/{uid}?{values}", "targetBlank": False}]


def _place(panels, top):
    """Places the panels below `top`. Returns where they end."""
    x, bottom = 0, top
    for panel in panels:
        place = panel["gridPos"]
        if x + place["w"] > COLUMNS:
            x, top = 0, bottom
        panel["gridPos"] = {"h": place["h"], "w": place["w"], "x": x, "y": top}
        x, bottom = x + place["w"], max(bottom, top + place["h"])
    return bottom


def row(title, repeat=None):
    """The head of the panels that follow it. `repeat`: the variable for each of whose values the row is shown."""
    head = {"type": "row", "title": title, "collapsed": False, "datasource": DATASOURCE, "panels": []}
    return {**head, "repeat": repeat} if repeat else head


def board(uid, title, description, rows, variables, annotations, links):
    """A whole dashboard. `rows`: heads and their panels."""
    placed, top = [], 0
    for head, panels in rows:
        head = {**head, "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": top}}
        top = _place(panels, top + 1)
        placed += [head, *panels]
    return {
        "uid": uid,
        "id": None,
        "title": title,
        "description": description,
        "tags": ["persia"],
        "editable": False,
        "graphTooltip": 1,
        "schemaVersion": 39,
        "version": 1,
        "timezone": "browser",
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "10s",
        "timepicker": {"refresh_intervals": ["5s", "10s", "30s", "1m", "5m"]},
        "templating": {"list": [_datasource_variable(), *variables]},
        "annotations": {"list": annotations},
        "links": links,
        "panels": [{"id": number, **panel} for number, panel in enumerate(placed, 1)],
    }
