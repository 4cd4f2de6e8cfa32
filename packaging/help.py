"""Writes the manual pages and the completion for bash from the program's own help.

    help.py PROGRAM DIRECTORY      writes DIRECTORY/persia-metrics-agent.1, DIRECTORY/persia-metrics-agent-COMMAND.1 for each command,
                                   and DIRECTORY/completions/persia-metrics-agent
"""

import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from bash_completion import bash_completion
from man_page import man_pages


@dataclass(frozen=True)
class Entry:
    """An option, positional or command: `--push-format auto|text|protobuf` and the lines that describe it."""

    words: str
    text: tuple

    @property
    def flags(self):
        return [word for word in re.split(r"[, ]", self.words) if word.startswith("-")]

    @property
    def placeholder(self):
        return self.words.partition(" ")[2]


@dataclass
class Help:
    """The help of the program or of a command. `sections` are lists of entries, `texts` lists of lines."""

    description: str
    usage: str
    sections: dict = field(default_factory=dict)
    texts: dict = field(default_factory=dict)

    def entries(self):
        return [entry for entries in self.sections.values() for entry in entries]


def parse(text):
    """Reads a help text. A section without entries is a text; what follows the last section is the text named ""."""
    lines = text.rstrip("\n").split("\n")
    usage = next(i for i, line in enumerate(lines) if line.startswith("Usage: "))
    found = Help(" ".join(lines[:usage]), lines[usage].removeprefix("Usage: "))
    title, entries = "", None
    for line in lines[usage + 1 :]:
        heading = re.fullmatch(r"([A-Z][A-Za-z ]{0,20}):", line)
        entry = re.fullmatch(r"  (\S+(?: \S+)*)(?:  +(\S.*))?", line)
        more = re.fullmatch(r" {20,}(\S.*)", line)
        if heading:
            title, entries = heading[1], []
            if title in ("Examples", "Exit codes"):
                entries, found.texts[title] = None, []
            else:
                found.sections[title] = entries
        elif entries is not None and more:
            entries[-1] = Entry(entries[-1].words, (*entries[-1].text, more[1]))
        elif entries is not None and entry:
            entries.append(Entry(entry[1], (entry[2],) if entry[2] else ()))
        else:
            if line and not line.startswith(" "):
                title, entries = "", None
            if line or found.texts.get(title):
                found.texts.setdefault(title, []).append(line)
    if not found.entries():
        raise ValueError(f"no options in the help:\n{text}")
    return found


def program_help(program):
    """The help of the program, and that of each command by name."""

    def ask(*words):
        return parse(subprocess.run([program, *words, "--help-all"], capture_output=True, text=True, check=True, timeout=60).stdout)

    whole = ask()
    return whole, {entry.words: ask(entry.words) for entry in whole.sections["Commands"]}


def main():
    program, directory = sys.argv[1], Path(sys.argv[2])
    whole, commands = program_help(program)
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    (directory / "completions").mkdir(parents=True, exist_ok=True)
    for name, page in man_pages(version, whole, commands).items():
        (directory / f"{name}.1").write_text(page)
    (directory / "completions/persia-metrics-agent").write_text(bash_completion(whole, commands))


if __name__ == "__main__":
    main()
