"""Lines, dots and texts of the page can be told from their background, in both themes: WCAG 2.2 asks for 3:1 and 4.5:1."""

import re

import pytest
from servers import ROOT

ASSETS = ROOT / "agent/web/assets"
THEMES = ("light", "dark")


def luminance(color):
    digits = color.removeprefix("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    brighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


def variables(theme):
    css = (ASSETS / "page.css").read_text()
    pairs = re.findall(r"--([\w-]+): light-dark\((#\w+), (#\w+)\);", css)
    return {name: each[THEMES.index(theme)] for name, *each in pairs}


@pytest.mark.parametrize("theme", THEMES)
def test_each_line_of_a_chart_can_be_seen(theme):
    script = (ASSETS / "chart_card.js").read_text()
    colors = re.findall(r"#[0-9a-f]{6}", re.search(rf"^  {theme}: \[(.*)\]", script, re.M)[1])
    assert len(colors) == 7
    for color in colors:
        assert contrast(color, variables(theme)["card"]) >= 3, color
    events = re.search(r"EVENT_COLOR = (.*);", script)[1]
    (event,) = re.findall(rf"{theme}: '(#\w+)'", events)
    assert contrast(event, variables(theme)["card"]) >= 3


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("back", ["card", "page", "bad-back"])
def test_each_text_can_be_read(theme, back):
    of = variables(theme)
    for name in ("text", "muted", "accent", "good", "bad"):
        if (name, back) in (("good", "bad-back"), ("accent", "bad-back")):
            continue  # do not occur
        assert contrast(of[name], of[back]) >= 4.5, name
