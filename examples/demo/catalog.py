"""The Persia tables, read from the library's catalog.h."""

import re
from collections import namedtuple

from servers import ROOT

CATALOG = ROOT / "lib/include/persia/metrics/catalog.h"

# `type` is counter, gauge or time_cost; `unit` and `label` may be empty.
Entry = namedtuple("Entry", "name table type unit label help")

_ENTRY = re.compile(
    r'inline constexpr Entry k\w+\{\s*"(\w+)",\s*Table::k(\w+),\s*Type::k(\w+),\s*"(\w*)",\s*"(\w*)",\s*((?:"[^"]*"\s*)+)\};'
)


def entries():
    """All entries, in the tables' order."""
    found = [
        Entry(name, table.lower(), {"TimeCost": "time_cost"}.get(kind, kind.lower()), unit, label, "".join(re.findall('"([^"]*)"', help)))
        for name, table, kind, unit, label, help in _ENTRY.findall(CATALOG.read_text())
    ]
    if len(found) != 15:
        raise ValueError(f"{CATALOG}: found {len(found)} entries, not 15: {[entry.name for entry in found]}")
    return found
