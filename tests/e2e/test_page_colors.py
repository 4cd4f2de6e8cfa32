"""Lines, dots and texts of the page can be told from their background, in both themes: WCAG 2.2 asks for 3:1 and 4.5:1."""

import re

import pytest
from servers import ROOT

pytestmark = pytest.mark.static

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
    script = (ASSETS / "line_style.js").read_text()
    colors = re.findall(r"#[0-9a-f]{6}", re.search(rf"^  {theme}: \[(.*)\]", script, re.M)[1])
    assert len(colors) == 7
    for color in colors:
        assert contrast(color, variables(theme)["card"]) >= 3, color
    underlay = (ASSETS / "underlay.js").read_text()
    for name in ("EVENT_COLOR", "ODD_COLOR"):
        (color,) = re.findall(rf"{theme}: '(#\w+)'", re.search(rf"{name} = (.*);", underlay)[1])
        assert contrast(color, variables(theme)["card"]) >= 3, name


def rules():
    """Selector and declarations of each rule without rules in it."""
    css = re.sub(r"/\*.*?\*/", "", (ASSETS / "page.css").read_text(), flags=re.S)
    return [(selector.strip(), body) for selector, body in re.findall(r"([^{}]+)\{([^{}]*)\}", css)]


def blended(color, back, share):
    """A color that lets a share of what is behind it through."""
    parts = [[int(one.removeprefix("#")[at : at + 2], 16) for at in (0, 2, 4)] for one in (six(color), six(back))]
    return "#" + "".join(f"{round(share * mine + (1 - share) * behind):02x}" for mine, behind in zip(*parts))


def gray(color):
    red, green, blue = (int(six(color)[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + 3 * f"{round(0.2126 * red + 0.7152 * green + 0.0722 * blue):02x}"


def six(color):
    digits = color.removeprefix("#")
    return "#" + ("".join(2 * digit for digit in digits) if len(digits) == 3 else digits)


@pytest.mark.parametrize("theme", THEMES)
def test_dimmed_text_can_be_read(theme):
    of = variables(theme)
    assert any("opacity" in body for _, body in rules())
    for selector, body in rules():
        share = re.search(r"(?<![-\w])opacity: ([\d.]+)", body)
        if share:
            assert contrast(blended(of["muted"], of["card"], float(share[1])), of["card"]) >= 4.5, selector
    # What is shown while the agent does not answer, in gray.
    (down,) = [body for selector, body in rules() if selector.startswith(".down ")]
    assert down.strip() == "filter: grayscale(1);"
    for back in ("card", "bad-back"):
        for name in ("text", "muted", "bad"):
            assert contrast(gray(of[name]), gray(of[back])) >= 4.5, name
    assert contrast(gray(of["good"]), gray(of["card"])) >= 4.5
    (ended,) = [body for selector, body in rules() if ".ended" in selector]
    assert ended.strip() == "color: var(--muted);", "a colour that is tested below"


@pytest.mark.parametrize("theme", THEMES)
def test_fields_and_buttons_have_an_edge(theme):
    (border,) = [re.search(r"border: 1px solid var\(--([\w-]+)\)", body)[1] for selector, body in rules() if selector == "input, button"]
    of = variables(theme)
    for back in ("card", "page", "bad-back"):
        assert contrast(of[border], of[back]) >= 3, back


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("back", ["card", "page", "bad-back"])
def test_each_text_can_be_read(theme, back):
    of = variables(theme)
    for name in ("text", "muted", "accent", "good", "bad"):
        if (name, back) in (("good", "bad-back"), ("accent", "bad-back")):
            continue  # do not occur
        assert contrast(of[name], of[back]) >= 4.5, name
