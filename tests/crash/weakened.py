"""Changes of a recording: how it would be if the agent lacked a step. Each must be found; else the cuts are too weak.

A mutation of the agent itself has the same effect, but needs a build.
"""

import dataclasses
from typing import Callable

from recorder import Do


@dataclasses.dataclass
class Weakened:
    change: Callable  # of a list of operations
    job: str = "beside"


def _numbered(operations):
    """A sync covers the operations before it."""
    return [(what, target, i if what == Do.SYNC else number, name, data) for i, (what, target, number, name, data) in enumerate(operations)]


def _names(operations):
    """The first names of files and directories, by number."""
    return {number: name for what, _, number, name, _ in operations if what in (Do.MKDIR, Do.LINK)} | {0: "root"}


def _without_syncs(which):
    """`which`: of the first name of the file or directory, and whether it has been renamed since."""

    def change(operations):
        names, renamed, kept = _names(operations), set(), []
        for operation in operations:
            what, target, number = operation[:3]
            if what == Do.RENAME:
                renamed.add(number)
            if what != Do.SYNC or not which(names[target], target in renamed):
                kept.append(operation)
        return _numbered(kept)

    return change


def _without_syncs_of_removals(operations):
    """A directory is synced after renames only."""
    names, kept, last = _names(operations), [], {}
    for operation in operations:
        what, target = operation[:2]
        if what == Do.SYNC and names[target] == "metrics" and last.get(target) != Do.RENAME:
            continue
        if what in (Do.RENAME, Do.UNLINK, Do.LINK):
            last[target] = what
        kept.append(operation)
    return _numbered(kept)


def _earlier(is_late, is_first):
    """Each `is_late` operation comes before the last `is_first` one before it."""

    def change(operations):
        names, changed = _names(operations), []
        for operation in operations:
            at = len(changed)
            if is_late(operation, names):
                at = max((i for i, other in enumerate(changed) if is_first(other, names, operation)), default=at)
            changed.insert(at, operation)
        return _numbered(changed)

    return change


def _syncs_state(operation, names):
    return operation[0] == Do.SYNC and names[operation[1]] == "agent.state.draft"


def _in_place(name):
    """The file is written itself, instead of a draft that is renamed."""

    def change(operations):
        first, of_draft, changed = {}, {}, []
        for what, target, number, text, data in operations:
            if what == Do.LINK and text == f"{name}.draft":
                of_draft[number] = first.setdefault(target, number)
                new = of_draft[number] == number
                changed.append((Do.LINK, target, number, name, b"") if new else (Do.TRUNCATE, of_draft[number], 0, b"", b""))
            elif what == Do.RENAME and data == name.encode() or what == Do.UNLINK and text == f"{name}.draft":
                continue
            else:
                changed.append((what, of_draft.get(target, target) if what in (Do.WRITE, Do.SYNC) else target, number, text, data))
        return _numbered(changed)

    return change


def _is_draft(*names):
    return lambda name, renamed: not renamed and name in {f"{draft}.draft" for draft in names}


WEAKENED = {
    "fdatasync of the state before its rename": Weakened(_without_syncs(_is_draft("agent.state"))),
    "fdatasync of the groups before their rename": Weakened(_without_syncs(_is_draft("agent.groups"))),
    "fdatasync of the series before their rename": Weakened(_without_syncs(_is_draft("agent.remote.db.series"))),
    "fdatasync of agent.conf before its rename": Weakened(_without_syncs(_is_draft("agent.conf")), "elsewhere"),
    "fsync of directories": Weakened(_without_syncs(lambda name, _: name in ("metrics", "state"))),
    "fsync of directories, state elsewhere": Weakened(_without_syncs(lambda name, _: name in ("metrics", "state")), "elsewhere"),
    "fsync of the parent of a new directory": Weakened(_without_syncs(lambda name, _: name == "root")),
    "fsync of removed segments before they are forgotten": Weakened(_without_syncs_of_removals, "elsewhere"),
    "fdatasync of appended batches": Weakened(_without_syncs(lambda name, renamed: renamed and name == "agent.state.draft")),
    "batch on disk before the next": Weakened(
        _earlier(_syncs_state, lambda other, _, sync: other[0] == Do.WRITE and other[1] == sync[1]),
    ),
    "groups in the ledger before the PUT": Weakened(
        _earlier(lambda operation, _: operation[0] == Do.PUT, lambda other, _names, _put: other[0] == Do.LINK and other[3] == "agent.groups.draft"),
    ),
    "fold on disk before the unlink": Weakened(
        _earlier(lambda operation, _: operation[0] == Do.UNLINK and operation[3].endswith(".seg"), lambda other, names, _: _syncs_state(other, names)),
    ),
    "draft of the state": Weakened(_in_place("agent.state")),
    "draft of the groups": Weakened(_in_place("agent.groups")),
    "fdatasync of stale markers before the series are forgotten": Weakened(_without_syncs(lambda name, renamed: not renamed and name.endswith(".queue.draft"))),
}
