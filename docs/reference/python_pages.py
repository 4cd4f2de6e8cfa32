"""Writes a page for each public module of the Python package, from its docstrings and signatures.

    python_pages.py DIRECTORY      with the built package on PYTHONPATH

Fails, and names each one, if a public symbol has no documentation: a docstring, or for a field or a variable the string after it.
"""

import ast
import enum
import functools
import html
import importlib
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType

MODULES = (
    "persia_metrics",
    "persia_metrics.timing",
    "persia_metrics.catalog",
    "persia_metrics.events",
    "persia_metrics.testing",
    "persia_metrics.bridge",
    "persia_metrics.benchmarkai",
    "persia_metrics.torchelastic",
    "persia_metrics.torchelastic.metrics",
    "persia_metrics.torchelastic.events",
    "persia_metrics.torchrun",
)
_STYLE = """
body { font: 15px/1.5 sans-serif; max-width: 60em; margin: 1em auto; padding: 0 1em; color: #222 }
pre, code { font: 13px/1.5 monospace; background: #f4f5f7 }
pre { padding: .5em 1em; overflow-x: auto }
h2, h3 { font: bold 14px/1.5 monospace; background: #e8ecf3; padding: .3em .6em; margin-top: 2em }
h3 { font-weight: normal; background: #f4f5f7; margin-top: 1em }
.members { margin-left: 2em }
"""


class _Bare:
    """An annotation that is shown as it is written."""

    def __init__(self, annotation):
        self._text = getattr(annotation, "__forward_arg__", annotation)  # a named tuple has ForwardRef

    def __repr__(self):
        return self._text if isinstance(self._text, str) else inspect.formatannotation(self._text)


def _signature(symbol):
    if not inspect.isroutine(symbol) and not inspect.isclass(symbol) or isinstance(symbol, enum.EnumMeta):
        return ""
    try:
        found = inspect.signature(symbol)
    except (TypeError, ValueError):
        return ""
    given = [p if p.annotation is p.empty else p.replace(annotation=_Bare(p.annotation)) for p in found.parameters.values()]
    result = found.return_annotation
    if inspect.isclass(symbol) or result is found.empty:
        return str(found.replace(parameters=given, return_annotation=found.empty))
    return str(found.replace(parameters=given, return_annotation=_Bare(result)))


@functools.cache
def _strings_after(symbol):
    """The strings that follow assignments in a module or a class, by the name that is assigned."""
    try:
        (tree,) = ast.parse(inspect.getsource(symbol)).body if inspect.isclass(symbol) else [ast.parse(inspect.getsource(symbol))]
    except (OSError, TypeError):
        return {}
    found = {}
    for before, after in zip(tree.body, tree.body[1:]):
        if isinstance(before, (ast.Assign, ast.AnnAssign)) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            target = before.target if isinstance(before, ast.AnnAssign) else before.targets[0]
            if isinstance(target, ast.Name):
                found[target.id] = inspect.cleandoc(after.value.value)
    return found


def _members(owner):
    """The public members of a class that the package defines, with their documentation."""
    texts = {}
    for base in reversed(owner.__mro__):
        if base.__module__.startswith("persia_metrics"):
            strings = _strings_after(base)
            names = [*vars(base).get("__annotations__", {}), *vars(base)]
            texts.update((name, strings.get(name)) for name in names if name[0] != "_")
    for name, text in texts.items():
        member = getattr(owner, name, None)
        if isinstance(member, owner) and issubclass(owner, enum.Enum):
            yield name, f" = {member.value!r}", text or ""  # the class's docstring is enough
        elif inspect.isroutine(member):
            yield name, _signature(member).replace("self: _Self", "self").replace("_Self", owner.__name__), inspect.getdoc(member)
        else:
            yield name, "", text or (inspect.getdoc(member) if isinstance(member, property) else None)


def _html(text):
    """A docstring as HTML: paragraphs, indented examples, lists, and words in backquotes."""
    parts = []
    for block in re.split(r"\n\n(?=\S)", text):
        lines = html.escape(block, quote=False)
        if re.match("- ", block):
            items = re.split(r"^- ", lines, flags=re.MULTILINE)[1:]
            lines = "<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>"
        prose, _, example = lines.partition("\n\n    ")
        if block.startswith("    "):
            prose, example = "", lines.removeprefix("    ")
        parts.append(re.sub("`([^`]*)`", r"<code>\1</code>", f"<p>{prose}</p>" if prose else ""))
        if example:
            parts.append("<pre>" + re.sub("^    ", "", example, flags=re.MULTILINE) + "</pre>")
    return "".join(parts)


class Page:
    def __init__(self, module):
        self._name = module.__name__
        self.missing = []
        self._parts = [f"<h1>{self._name}</h1>", self._text(self._name, inspect.getdoc(module))]
        texts = {}
        for other in [m for name, m in sys.modules.items() if name.startswith("persia_metrics")]:
            # A package exports names of its modules.
            texts.update((n, text) for n, text in _strings_after(other).items() if getattr(module, n, None) is getattr(other, n))
        for name in getattr(module, "__all__", None) or [n for n, s in vars(module).items() if self._is_own(n, s)]:
            self._add(name, getattr(module, name), texts.get(name))

    def _is_own(self, name, symbol):
        return name[0] != "_" and inspect.isroutine(symbol) | inspect.isclass(symbol) and symbol.__module__ == self._name

    def _text(self, name, text):
        if text is None:
            self.missing.append(name)
        return _html(text or "")

    def _add(self, name, symbol, text):
        place = f"{self._name}.{name}"
        if isinstance(symbol, ModuleType):
            return
        if inspect.isclass(symbol) and symbol.__name__ != name:
            self._parts.append(f"<h2>{name}</h2><p>Another name for <code>{symbol.__name__}</code>.</p>")
            return
        kind = "class " if inspect.isclass(symbol) else ""
        if text is None and (kind or inspect.isroutine(symbol)) and symbol.__doc__:
            text = inspect.cleandoc(symbol.__doc__)
        # What a dataclass or a named tuple without a docstring gets.
        if kind and text is not None and text.startswith(f"{name}("):
            text = None
        signature = html.escape(_signature(symbol), quote=False)
        self._parts.append(f'<h2 id="{name}">{kind}{name}{signature}</h2>{self._text(place, text)}')
        if kind:
            members = [
                f"<h3>{member}{html.escape(signature, quote=False)}</h3>{self._text(f'{place}.{member}', about)}"
                for member, signature, about in _members(symbol)
            ]
            self._parts.append('<div class="members">' + "\n".join(members) + "</div>")

    def html(self):
        links = " | ".join(f'<a href="{"index" if name == MODULES[0] else name}.html">{name}</a>' for name in MODULES)
        head = f'<!DOCTYPE html><html><head><meta charset="utf-8"><title>{self._name}</title><style>{_STYLE}</style></head>'
        return f"{head}<body><p>{links}</p>" + "\n".join(self._parts) + "</body></html>\n"


def main():
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    pages = {name: Page(importlib.import_module(name)) for name in MODULES}
    for name, page in pages.items():
        (directory / f"{'index' if name == MODULES[0] else name}.html").write_text(page.html())
    missing = [symbol for page in pages.values() for symbol in page.missing]
    for symbol in missing:
        print(f"error: {symbol} is not documented", file=sys.stderr)
    sys.exit(1 if missing else 0)


main()
