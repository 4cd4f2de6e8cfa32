"""The operators: one-line mutations of a C++ source in this project's format.

An operator reads a source line by line. Comments, strings and preprocessor lines are blanked first (`Source.code`), so that it finds code
only. It yields replacements of one line, or of two for statements that swap their places. Blanks around a token, which clang-format puts,
tell `a < b` from `vector<int>`. A replacement that does not compile, or changes no machine code, is found later, by compiling.
"""

import collections
import dataclasses
import functools
import hashlib
import re


@dataclasses.dataclass(frozen=True)
class Mutation:
    path: str  # relative to the tree's root
    line: int  # of the first line, from 1
    operator: str
    old: str  # the line, or two lines
    new: str
    occurrence: int  # how many earlier places of the file have the same operator, old and new text

    @functools.cached_property
    def key(self):
        """Names the mutation, also after edits elsewhere in the file."""
        parts = (self.path, self.operator, self.old, self.new, str(self.occurrence))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]

    def apply(self, text):
        """The source's text with the mutation."""
        lines = text.split("\n")
        first, count = self.line - 1, self.old.count("\n") + 1
        if "\n".join(lines[first : first + count]) != self.old:
            raise ValueError(f"{self.path}:{self.line} is not {self.old!r}")
        lines[first : first + count] = self.new.split("\n")
        return "\n".join(lines)


_NO_CODE = re.compile(
    r"""
    //[^\n]* | /\*.*?\*/
    | ^[ ]*\#(?:[^\n]*\\\n)*[^\n]*                # a preprocessor line
    | R"(?P<mark>[^(\n]*)\(.*?\)(?P=mark)"        # a raw string
    | "(?:\\.|[^"\\\n])*"
    | (?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'          # not 1'000
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


def blank(text):
    """The text with spaces for comments, preprocessor lines and the insides of literals. Lines and columns stay."""

    def spaces(match):
        hidden = re.sub(r"[^\n]", " ", match[0])
        return f"{match[0][0]}{hidden[1:-1]}{match[0][-1]}" if match[0][0] in "\"'" else hidden

    return _NO_CODE.sub(spaces, text)


def closing(code, start):
    """The index of the parenthesis that closes the one at `start`, or -1 if it is not in this line."""
    depth = 0
    for i in range(start, len(code)):
        depth += (code[i] == "(") - (code[i] == ")")
        if depth == 0:
            return i
    return -1


_CONTROL = re.compile(r"\s*(?:\} )?(?:(?:else )?(?:if|for|while) (?=\()|else )")
_TARGET = r"[*(]*[\w:]+(?:\([^()]*\)|->|\.|\[[^][]*\]|[\w:)])*"
_CALL = re.compile(rf"(?:static_cast<void>\(|::)?{_TARGET}\(.*\);$")
_ASSIGNMENT = re.compile(rf"(?:{_TARGET} (?:[-+|&*]|<<|>>)?= .*|(?:\+\+|--){_TARGET});$")
_NOT_STATEMENTS = re.compile(r"(?:case|using|delete|throw|static_assert|alignas|assert)\b")
# What drops without an effect that a user could see.
_NO_EFFECT = re.compile(r"Log(?:Info|Debug)\(|\.(?:reserve|shrink_to_fit)\(")


class Source:
    """A source's lines, and the same lines with code alone."""

    def __init__(self, text):
        self.lines = text.split("\n")
        self.code = [line.rstrip() for line in blank(text).split("\n")]
        # The first column of statements: in a header, members of a class stand before it.
        self._first_column = 4 if "#pragma once" in text else 2

    def statement(self, i):
        """(column, text) of the simple statement that line i has, alone or after `if (...)`; the text is "" if it has none."""
        code = self.code[i]
        before = next((line for line in reversed(self.code[:i]) if line.strip()), "")
        if not code.endswith(";") or code.count("(") != code.count(")") or not before.endswith((";", "{", "}", ":", ")", "else")):
            return 0, ""
        column = len(code) - len(code.lstrip())
        while control := _CONTROL.match(code, column):
            column = control.end()
            if code[column : column + 1] == "(":
                column = closing(code, column) + 2
                if column < 2:
                    return 0, ""
        is_statement = len(code) - len(code.lstrip()) >= self._first_column and not _NOT_STATEMENTS.match(code, column)
        return (column, code[column:]) if is_statement else (0, "")

    def is_alone(self, i, column):
        return not self.code[i][:column].strip()


def _is_call(text):
    return _CALL.match(text) and not text.startswith("return")


def _is_assignment(text):
    return _ASSIGNMENT.match(text) is not None


def _without(source, i, column):
    """Line i without its statement from this column on."""
    return source.lines[i][:column] + "{}" if not source.is_alone(i, column) else " " * column + ";"


def _replace(pairs, skip=None):
    """An operator that replaces one match of a pattern in a line."""
    compiled = [(re.compile(pattern), new) for pattern, new in pairs]

    def operator(source):
        for i, code in enumerate(source.code):
            if skip and skip.search(code):
                continue
            for pattern, new in compiled:
                for match in pattern.finditer(code):
                    line = source.lines[i]
                    text = new(match) if callable(new) else new
                    if text is not None:
                        yield i, 1, line[: match.start()] + text + line[match.end() :]

    return operator


def _both_ways(*pairs):
    return [(re.escape(old), new) for pair in pairs for old, new in (pair, pair[::-1])]


def condition(source):
    for i, code in enumerate(source.code):
        for match in re.finditer(r"\b(?:if|while) \(", code):
            start, end = match.end(), closing(code, match.end() - 1)
            if end < 0:
                continue
            start = max(start, code.rfind("; ", start, end) + 2)
            if not re.match(r"[\w:<>*&, ]+ [*&]?\w+ = ", code[start:end]):
                line = source.lines[i]
                yield i, 1, f"{line[:start]}!({line[start:end]}){line[end:]}"


def dropped_call(source):
    for i, code in enumerate(source.code):
        column, text = source.statement(i)
        # A loop that waits would become one that spins.
        if _is_call(text) and not _NO_EFFECT.search(text) and not code.lstrip().startswith("while"):
            yield i, 1, _without(source, i, column)


def dropped_assignment(source):
    for i in range(len(source.code)):
        column, text = source.statement(i)
        if _is_assignment(text):
            yield i, 1, _without(source, i, column)


def swapped(source):
    """At least one of them a call: the order of two assignments rarely matters."""
    for i in range(len(source.code) - 1):
        (column, first), (other_column, second) = source.statement(i), source.statement(i + 1)
        calls = [_is_call(text) for text in (first, second)]
        acts = all(call or _is_assignment(text) for call, text in zip(calls, (first, second), strict=True))
        if any(calls) and acts and column == other_column and source.is_alone(i, column) and source.is_alone(i + 1, column):
            yield i, 2, f"{source.lines[i + 1]}\n{source.lines[i]}"


def early_out(source):
    for i in range(len(source.code)):
        column, text = source.statement(i)
        if text in ("return;", "continue;", "break;"):
            yield i, 1, _without(source, i, column)
        elif re.match(r"return\b", text):
            after = [line.strip() for line in source.code[i + 1 : i + 3]]
            goes_on = len(after) == 2 and after[0] == "}" and after[1] != "" and not after[1].startswith(("}", "case", "default"))
            if not source.is_alone(i, column) or goes_on:
                yield i, 1, _without(source, i, column)


def _next_number(match):
    digits = match[1].replace("'", "")
    return f"{int(digits) + 1}{match[2]}"


# Durations and the sizes of buffers: one more of them is no fault.
_APPROXIMATE = re.compile(r"seconds|minutes|hours|[tT]imeout|reserve\(|static_assert|^\s*(?:unsigned )?(?:char|uint8_t) \w+\[")
# Only the value of a named constant, and no flag, text or mode.
_NO_LIMIT = re.compile(r"^(?!.*constexpr [\w:]+ k[A-Z])|bool|char|string|mode_t")

# By name: how often it is drawn, of 100, and the function.
OPERATORS = {
    "boundary": (13, _replace(_both_ways((" < ", " <= "), (" > ", " >= ")), re.compile(r"static_assert|template"))),
    "equality": (5, _replace(_both_ways((" == ", " != ")), re.compile(r"static_assert|operator"))),
    "condition": (11, condition),
    "logic": (6, _replace(_both_ways((" && ", " || ")), re.compile("static_assert|requires"))),
    # A sum on a line with a string is its concatenation.
    "arithmetic": (6, _replace(_both_ways((" + ", " - "), (" * ", " / "), (" += ", " -= ")), re.compile(r'"|to_string|static_assert'))),
    "constant": (9, _replace([(r"(?<![\w.'])(0|[1-9][\d']*)([uUlL]*)(?![\w.'])", _next_number)], _APPROXIMATE)),
    "limit": (3, _replace([(r"(?<= = )[^;{}]+(?=;)", lambda match: f"({match[0]}) * 2")], _NO_LIMIT)),
    "growth": (1, _replace([(r" \*= [^;]+(?=;)", " *= 1"), (r" <<= [^;]+(?=;)", " <<= 0")])),
    "boolean": (4, _replace([(r"\btrue\b", "false"), (r"\bfalse\b", "true")])),
    "extreme": (4, _replace(_both_ways(("std::min(", "std::max(")))),
    "dropped call": (13, dropped_call),
    "dropped assignment": (8, dropped_assignment),
    "swapped": (7, swapped),
    "early out": (8, early_out),
    "sync": (1, _replace([(r"(?:::)?\bf(?:data)?sync\((?:[^()]|\([^()]*\))*\)", "0")])),
    "memory order": (1, _replace([(r"\bmemory_order_(?:release|acquire|acq_rel|seq_cst)\b", "memory_order_relaxed")])),
}


def mutations(path, text):
    """All mutations of a source, in the order of operators, then of lines."""
    source = Source(text)
    for name, (_, operator) in OPERATORS.items():
        seen = collections.Counter()
        for i, count, new in operator(source):
            old = "\n".join(source.lines[i : i + count])
            if new != old:
                yield Mutation(path, i + 1, name, old, new, seen[old, new])
                seen[old, new] += 1
