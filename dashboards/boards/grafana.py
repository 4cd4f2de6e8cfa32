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


def _panel(kind, title, description, unit, queries, size, thresholds=GREEN, custom=None, options=None, **defaults):
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
        "fieldConfig": {"defaults": field, "overrides": []},
        "options": options or {},
        "targets": targets,
        "gridPos": {"w": size[0], "h": size[1]},
    }


def stat(title, description, unit, target, thresholds=GREEN, **defaults):
    """The newest value of each job as a number."""
    options = {"colorMode": "value", "graphMode": "area", "justifyMode": "auto", "orientation": "auto", "textMode": "auto"}
    options["reduceOptions"] = {"calcs": ["lastNotNull"], "fields": "", "values": False}
    color = {"mode": "thresholds"}
    return _panel("stat", title, description, unit, [target], (4, 4), thresholds, options=options, color=color, **defaults)


def chart(title, description, unit, queries, size=(8, 8), thresholds=GREEN, legend_calcs=("lastNotNull",), signed=False, **defaults):
    """Lines over time from 0 up, or `signed`; thresholds as dashed lines."""
    custom = {"drawStyle": "line", "fillOpacity": 0, "lineInterpolation": "linear", "lineWidth": 1, "showPoints": "auto", "spanNulls": False}
    custom["thresholdsStyle"] = {"mode": "off" if thresholds is GREEN else "dashed"}
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
    mapping = {str(value): {"color": color, "index": at, "text": text} for at, (value, (text, color)) in enumerate(texts.items())}
    custom = {"fillOpacity": 70, "lineWidth": 0}
    options = {"alignValue": "left", "mergeValues": True, "rowHeight": 0.9, "showValue": "never"}
    options["legend"] = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
    options["tooltip"] = {"mode": "single", "sort": "none"}
    mappings = [{"type": "value", "options": mapping}]
    color = {"mode": "thresholds"}
    return _panel("state-timeline", title, description, "none", [target], size, GREEN, custom, options, mappings=mappings, color=color)


def table(title, description, unit, queries, columns=(), size=(24, 8)):
    """The newest values, a row for each set of labels, which all expressions must have.

    `queries`: expressions by the column that each fills; `columns`: other names for labels, or None to hide one.
    """
    targets = [query(expr, "", instant=True, form="table") for expr in queries.values()]
    values = [f"Value #{chr(ord('A') + number)}" for number in range(len(targets))] if len(targets) > 1 else ["Value"]
    columns = {"Time": None, **dict(columns), **dict(zip(values, queries))}
    hidden = {label: True for label, name in columns.items() if name is None}
    renamed = {label: name for label, name in columns.items() if name is not None}
    panel = _panel("table", title, description, unit, targets, size, custom={"align": "auto", "filterable": True}, options={"showHeader": True})
    panel["transformations"] = [
        {"id": "merge", "options": {}},
        {"id": "organize", "options": {"excludeByName": hidden, "indexByName": {}, "renameByName": renamed}},
    ]
    return panel


def text(title, description, markdown, size=(24, 5)):
    panel = _panel("text", title, description, "none", [], size, options={"content": markdown, "mode": "markdown"})
    del panel["targets"]
    return panel


def repeated(panel, variable, most):
    """The panel once for each value of a variable, at most `most` in a row."""
    return {**panel, "repeat": variable, "repeatDirection": "h", "maxPerRow": most}


def variable(name, label, label_of, metric, all_value=".+", with_all=True):
    """A choice among the values of a label; `metric`: the selector that lists them. Without All, Grafana begins with the first value."""
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
        "regex": "",
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


def link(uid, title):
    """To another board, with the same jobs, instances and time range."""
    how = {"asDropdown": False, "includeVars": True, "keepTime": True, "targetBlank": False, "tags": []}
    return {"type": "link", "title": title, "url": f"/d/{uid}", "icon": "dashboard", "tooltip": f"{title}, of the same jobs and time", **how}


def link_in_text(uid, title):
    """The same in a text."""
    return f"[{title}](/d/{uid}?${{job:queryparam}}&${{instance:queryparam}}&${{__url_time_range}})"


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


def board(uid, title, description, rows, variables, annotations, links):
    """A whole dashboard. `rows`: panels by the row's title."""
    placed, top = [], 0
    for name, panels in rows.items():
        row = {"type": "row", "title": name, "collapsed": False, "datasource": DATASOURCE, "panels": []}
        row["gridPos"] = {"h": 1, "w": COLUMNS, "x": 0, "y": top}
        top = _place(panels, top + 1)
        placed += [row, *panels]
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
