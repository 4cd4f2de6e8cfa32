"""Draws a board with the data of a Prometheus, in Grafana's layout, as an HTML page.

    python3 dashboards/picture.py persia-training http://localhost:9090 --minutes 2 > board.html
    chromium --headless --hide-scrollbars --window-size=1400,1701 --screenshot=board.png board.html
"""

import argparse
import html
import json
import math
import re
import time
import urllib.parse
import urllib.request
from pathlib import Path

WIDTH, UNIT, GAP = 1400, 27, 6  # of the page, of the grid's rows, between panels; in pixels
COLORS = ["#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c", "#5794f2", "#b877d9", "#ca95e5"]
NAMED = {"green": "#73bf69", "yellow": "#f2cc0c", "red": "#f2495c", "text": "#ccccdc"}
STYLE = """body { background: #111217; color: #ccccdc; font: 12px sans-serif; margin: 0; position: relative }
div { position: absolute; box-sizing: border-box; overflow: hidden } .panel { background: #181b1f; border: 1px solid #2a2d33 }
h2 { font-size: 15px; margin: 4px 6px } h3 { font-size: 12px; font-weight: 600; margin: 5px 8px } text { fill: #9a9aa8; font-size: 10px }"""


def query_range(prometheus, expression, start, end):
    """Labels and (time, value) pairs of each series, without NaN and infinite values."""
    step = max(1, round((end - start) / 240))
    body = urllib.parse.urlencode({"query": expression, "start": start, "end": end, "step": step})
    with urllib.request.urlopen(f"{prometheus}/api/v1/query_range?{body}", timeout=30) as answer:
        found = json.load(answer)["data"]["result"]
    series = [(one["metric"], [(at, float(value)) for at, value in one["values"] if math.isfinite(float(value))]) for one in found]
    return [(labels, points) for labels, points in series if points]


def fill_in(expression, values):
    """The expression with the values of Grafana's variables; those that are not among them match everything."""
    values = {"team": ".*", **values}  # a label that a job may not have
    return re.sub(r"\$\{?([a-z_]\w*)\}?", lambda found: values.get(found[1], ".+"), expression)


def shown(value, unit):
    """A value as Grafana writes it."""
    if unit == "percentunit":
        return f"{100 * value:.3g}%"
    if unit == "s":
        factor, name = next(((f, n) for f, n in ((1, "s"), (1e3, "ms"), (1e6, "µs")) if abs(value) * f >= 1), (1, "s"))
        return f"{value * factor:.3g} {name}"
    factor, name = next(((f, n) for f, n in ((1e6, "M"), (1e3, "K")) if abs(value) >= f), (1, ""))
    return f"{value / factor:.3g}{name}" + {"cps": " c/s", "ops": " ops/s"}.get(unit, "")


def legend(target, labels):
    return re.sub(r"{{(\w+)}}", lambda found: labels.get(found[1], ""), target["legendFormat"])


def line(points, window, top, box, color):
    (start, end), (left, upper, width, height) = window, box
    spots = [f"{left + width * (at - start) / (end - start):.1f},{upper + height * (1 - value / top):.1f}" for at, value in points]
    return f'<polyline points="{" ".join(spots)}" fill="none" stroke="{color}" stroke-width="1.3"/>'


def timeseries(panel, series, window, width, height):
    unit = panel["fieldConfig"]["defaults"]["unit"]
    top = panel["fieldConfig"]["defaults"].get("max") or 1.1 * max((value for _, points in series for _, value in points), default=1) or 1
    rows = min(len(series), 5)
    box = (52, 6, width - 64, height - 26 - 14 * rows)
    parts = []
    for part in (0, 0.5, 1):
        y = box[1] + box[3] * (1 - part)
        parts.append(f'<line x1="{box[0]}" x2="{box[0] + box[2]}" y1="{y}" y2="{y}" stroke="#2a2d33"/>')
        parts.append(f'<text x="{box[0] - 5}" y="{y + 3}" text-anchor="end">{shown(part * top, unit)}</text>')
    for at in (0.1, 0.5, 0.9):
        moment = time.strftime("%H:%M:%S", time.localtime(window[0] + at * (window[1] - window[0])))
        parts.append(f'<text x="{box[0] + at * box[2]}" y="{box[1] + box[3] + 13}" text-anchor="middle">{moment}</text>')
    for number, (name, points) in enumerate(series):
        color = COLORS[number % len(COLORS)]
        parts.append(line(points, window, top, box, color))
        if number < rows:
            y = box[1] + box[3] + 28 + 14 * number
            parts.append(f'<rect x="8" y="{y - 4}" width="12" height="3" fill="{color}"/><text x="26" y="{y}">{html.escape(name)}</text>')
            parts.append(f'<text x="{width - 10}" y="{y}" text-anchor="end">{shown(points[-1][1], unit)}</text>')
    return parts


def stat(panel, series, window, width, height):
    if not series:
        return []
    field = panel["fieldConfig"]["defaults"]
    points, value = series[0][1], round(series[0][1][-1][1], field.get("decimals", 9))
    color = [step["color"] for step in field["thresholds"]["steps"] if step["value"] is None or value >= step["value"]][-1]
    top = max(one for _, one in points) or 1
    trend = line(points, window, top, (0, height * 0.55, width, height * 0.4), NAMED[color])
    big = f'<text x="{width / 2}" y="{height * 0.45}" text-anchor="middle" style="font-size:26px;fill:{NAMED[color]}">{shown(value, field["unit"])}</text>'
    return [f'<g opacity="0.45">{trend}</g>', big]


def heatmap(panel, series, window, width, height):
    """`series`: cumulative buckets by their bound."""
    bounds = sorted(((float(name), dict(points)) for name, points in series), key=lambda one: one[0])
    cells, below = {}, {}
    for bound, points in bounds:
        cells[bound] = {at: max(0, value - below.get(at, 0)) for at, value in points.items()}
        below = points
    used = [bound for bound in cells if max(cells[bound].values()) > 0 and math.isfinite(bound)]
    most = max((value for bound in used for value in cells[bound].values()), default=1)
    moments = sorted({at for bound in used for at in cells[bound]})
    parts, (left, wide, tall) = [], (52, (width - 64) / max(1, len(moments)), (height - 30) / max(1, len(used)))
    for row, bound in enumerate(used):
        y = 6 + tall * (len(used) - 1 - row)
        parts.append(f'<text x="{left - 5}" y="{y + tall / 2 + 3}" text-anchor="end">{shown(bound, "s")}</text>')
        for column, at in enumerate(moments):
            if cells[bound].get(at, 0) > 0:
                strength = 0.1 + 0.9 * math.sqrt(cells[bound][at] / most)
                place = f'x="{left + wide * column:.1f}" y="{y:.1f}" width="{wide + 0.3:.1f}" height="{tall - 1:.1f}"'
                parts.append(f'<rect {place} fill="#ff780a" opacity="{strength:.2f}"/>')
    return parts


KINDS = {"timeseries": timeseries, "stat": stat, "heatmap": heatmap}


def draw(board, ask, window):
    """The page. `ask` returns the series of an expression."""
    column, page, bottom = (WIDTH - GAP) / 24, [], 0
    for panel in board["panels"]:
        place = panel["gridPos"]
        x, y, width, height = place["x"] * column + GAP, place["y"] * UNIT, place["w"] * column - GAP, place["h"] * UNIT - GAP
        bottom = max(bottom, y + height)
        where = f'style="left:{x:.0f}px;top:{y}px;width:{width:.0f}px;height:{height}px"'
        if panel["type"] == "row":
            page.append(f"<div {where}><h2>{panel['title']}</h2></div>")
            continue
        inside = ""
        if panel["type"] in KINDS:
            series = [(legend(target, labels), points) for target in panel["targets"] for labels, points in ask(target["expr"])]
            picture = KINDS[panel["type"]](panel, series, window, width, height - 26)
            inside = f'<svg width="{width:.0f}" height="{height - 26}">{"".join(picture)}</svg>'
        page.append(f'<div {where} class="panel"><h3>{panel["title"]}</h3>{inside}</div>')
    return f'<!doctype html><meta charset="utf-8"><style>{STYLE}</style><body style="height:{bottom}px">{"".join(page)}</body>\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("board", help="such as persia-training")
    parser.add_argument("prometheus", help="its address, as http://host:port")
    parser.add_argument("--minutes", type=float, default=60, help="how far back (default: 60)")
    parser.add_argument("--interval", type=float, default=10, help="seconds between two scrapes or pushes (default: 10)")
    arguments = parser.parse_args()
    board = json.loads((Path(__file__).parent / f"{arguments.board}.json").read_text())
    window = time.time() - 60 * arguments.minutes, time.time()
    times = {"__rate_interval": 4 * arguments.interval, "__range": 60 * arguments.minutes, "__interval": arguments.interval}
    values = {name: f"{seconds:g}s" for name, seconds in times.items()}
    values |= {"__interval_ms": f"{1000 * arguments.interval:g}", "metric": "benchmarkai_.+"}

    def ask(expression):
        return query_range(arguments.prometheus, fill_in(expression, values), *window)

    print(draw(board, ask, window), end="")


if __name__ == "__main__":
    main()
