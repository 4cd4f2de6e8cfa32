"""The reference of the C++, C and Python API is built without a warning, and a public symbol without documentation fails it."""

import html
import re
import shutil
import subprocess

import pytest
from conftest import PYTHON_PACKAGE, environment
from servers import ROOT

HEADERS = "lib/include/persia/metrics"
PACKAGE = "package/persia_metrics"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A copy of the sources, with the built Python package in package/."""
    tree = tmp_path_factory.mktemp("sources")
    for folder in ("docs/reference", "lib/include", "lib/bridge/include"):
        shutil.copytree(ROOT / folder, tree / folder)
    shutil.copy(ROOT / "CMakeLists.txt", tree)
    shutil.copytree(PYTHON_PACKAGE, tree / "package", ignore=shutil.ignore_patterns("CMakeFiles"))
    return tree


def build(tree):
    """Returns the exit code, and what was printed."""
    command = [tree / "docs/reference/build", tree / "out", tree / "package"]
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run(command, env=environment(), timeout=120, check=False, **both)
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def built(whole):
    assert build(whole) == (0, "")
    return whole / "out"


def text_of(page):
    return html.unescape(re.sub("<[^>]*>", "", page.read_text()))


def test_each_header_has_a_page_with_its_comment(built):
    headers = [path for folder in ("lib", "lib/bridge") for path in (ROOT / folder / "include/persia/metrics").glob("*.h")]
    for header in headers:
        if header.name != "export.h":
            page = text_of(built / "cpp/html" / (header.name.replace("_", "__").replace(".", "_8") + ".html"))
            start = re.match(r"(?://|/\*) ([\w' ]+)", header.read_text())[1]
            assert start.lower() in page.lower(), header


def test_the_first_page_lists_each_header(built):
    page = text_of(built / "cpp/html/index.html")
    for header in (ROOT / HEADERS).glob("*.h"):
        assert header.name in page or header.name == "export.h", header


def test_the_search_finds_a_class(built):
    words = "".join(path.read_text() for path in (built / "cpp/html/search").glob("classes_*.js"))
    assert "'InPhase'" in words and "search/search.js" in (built / "cpp/html/index.html").read_text()


def test_each_public_module_has_a_page(built):
    package = ROOT / "lib/python/persia_metrics"
    for source in package.rglob("*.py"):
        if "__all__ =" in source.read_text() and source.name != "api.py":  # torchelastic's packages export its names
            module = ".".join(source.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")
            page = "index" if module == "persia_metrics" else module
            assert (built / f"python/html/{page}.html").exists(), module


def test_each_member_has_its_comment(built):
    counter = text_of(built / "cpp/html/classpersia_1_1metrics_1_1Counter.html")
    assert "A negative or non-finite by is ignored and counted as dropped" in counter
    assert "#include <persia/metrics/instruments.h>" in counter
    assert "a name does not fit into a line" in text_of(built / "cpp/html/emit_8h.html")
    assert "Adds amount. A negative or non-finite one is ignored" in text_of(built / "python/html/index.html")
    assert "Unix time in milliseconds" in text_of(built / "python/html/persia_metrics.torchelastic.events.html")


def test_pages_have_no_dead_links_and_no_scripts(built):
    for page in built.rglob("*.html"):
        text = page.read_text()
        assert "<script" not in text, page
        for link in re.findall(r'(?:href|src)="([^"#:]+)(?:#[^"]*)?"', text):
            assert (page.parent / link).exists(), f"{page}: {link}"


@pytest.mark.parametrize(
    ("file", "comment", "symbol"),
    [
        (f"{HEADERS}/instruments.h", "  // Adds one.\n", "Increment"),
        (f"{HEADERS}/init.h", "// The outcome of Init.", "persia::metrics::InitResult"),
        (f"{HEADERS}/emit.h", "// How a call of Emit ended.", "EmitStatus"),
        (f"{HEADERS}/labels.h", '// "user_id"', "value"),
        (f"{HEADERS}/c.h", "/* Adds one observation.", "persia_metrics_histogram_observe"),
        ("lib/bridge/include/persia/metrics/prometheus_cpp.h", "  // Copies the registry now", "CopyNow"),
        (f"{PACKAGE}/__init__.py", '    """Whether an agent can see this process\'s metrics: init()', "persia_metrics.exporting"),
        (f"{PACKAGE}/instruments.py", '        """Sets the gauge to the Unix time', "persia_metrics.Gauge.set_to_current_time"),
        (f"{PACKAGE}/torchelastic/events/api.py", '    """Unix time in milliseconds', "persia_metrics.torchelastic.events.Event.timestamp"),
    ],
)
def test_a_symbol_without_documentation_fails_it(whole, tmp_path, file, comment, symbol):
    """Deletes the comment that begins with this text, or makes the docstring an ordinary expression."""
    tree = shutil.copytree(whole, tmp_path / "tree", ignore=shutil.ignore_patterns("out"))
    path = tree / file
    text = path.read_text()
    assert text.count(comment) == 1
    start = text.index(comment)
    if file.endswith(".py"):
        text = text.replace(comment, comment.replace('"""', 'f"""'))
    elif file.endswith("c.h"):
        text = text[:start] + text[text.index("*/", start) + 2 :]
    else:
        text = text[:start] + re.sub(r"\A *//.*\n(?: *//.*\n)*", "\n", text[start:])
    path.write_text(text)
    code, printed = build(tree)
    assert code != 0
    assert re.search(rf"\b{symbol}\b.* is not documented", printed), printed
