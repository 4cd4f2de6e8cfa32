"""Reads the Dockerfile: its stages and steps, as far as this project uses the language.

Unknown syntax is an error, so that no step is skipped silently.
"""

import json
import re
import shlex
from dataclasses import dataclass, field

_KNOWN = ("FROM", "WORKDIR", "COPY", "RUN", "USER", "ENV", "HEALTHCHECK", "CMD")


@dataclass
class Step:
    instruction: str
    text: str  # the rest of the instruction, in one line
    line: int

    def options(self):
        """`--name=value` words at its beginning, and the words after them."""
        words = shlex.split(self.text)
        options = {}
        while words and words[0].startswith("--"):
            name, _, value = words.pop(0)[2:].partition("=")
            options[name] = value
        return options, words

    def command(self):
        """The command's words. The shell form is a command of the shell."""
        text = re.sub(r"^(--\S+\s+)*(CMD\s+)?", "", self.text) if self.instruction == "HEALTHCHECK" else self.text
        return json.loads(text) if text.startswith("[") else ["/bin/sh", "-c", text]


@dataclass
class Stage:
    base: str
    name: str
    steps: list = field(default_factory=list)

    def last(self, instruction):
        """The last step of this kind, which overrides earlier ones, or None."""
        return next((step for step in reversed(self.steps) if step.instruction == instruction), None)

    def all(self, instruction):
        return [step for step in self.steps if step.instruction == instruction]


def _logical_lines(text):
    """(line number, line) with continuations joined and without comments."""
    joined, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        first = first or number
        if line.endswith("\\"):
            joined += line[:-1].strip() + " "
            continue
        yield first, joined + line.strip()
        joined, first = "", 0
    if joined:
        raise ValueError(f"line {first}: the last line ends in a backslash")


def parse(text):
    """The file's stages, in order."""
    stages = []
    for number, line in _logical_lines(text):
        instruction, _, rest = line.partition(" ")
        if instruction not in _KNOWN:
            raise ValueError(f"line {number}: unknown instruction {instruction!r} ({', '.join(_KNOWN)})")
        if instruction == "FROM":
            match = re.fullmatch(r"(\S+)(?:\s+AS\s+(\S+))?", rest)
            if match is None:
                raise ValueError(f"line {number}: cannot read {line!r}")
            stages.append(Stage(match[1], match[2] or str(len(stages))))
        elif not stages:
            raise ValueError(f"line {number}: {instruction} before the first FROM")
        else:
            stages[-1].steps.append(Step(instruction, rest, number))
    return stages


def ignored(text):
    """The names at the root of the repository that .dockerignore excludes. Other patterns are an error."""
    names = [line for line in text.splitlines() if line and not line.startswith("#")]
    for name in names:
        if not re.fullmatch(r"/[\w.-]+/?", name):
            raise ValueError(f".dockerignore: cannot read {name!r}")
    return {name.strip("/") for name in names}
