"""Holds the shared library to exporting its API and nothing else, with the project's version.

usage: check_exports.py SHARED_LIBRARY VERSION [--write]

exports.txt, beside this file, lists the symbols; --write writes it. Weak symbols and type information are left out: which inlined functions a
compiler emits is its own affair, and whether a class's type information is weak (GCC) or not (clang). A class is held by its vtable.
"""

import re
import subprocess
import sys
from pathlib import Path

GOLDEN = Path(__file__).parent / "exports.txt"
library, version = sys.argv[1:3]
listing = subprocess.run(["nm", "-DC", "--defined-only", library], check=True, capture_output=True, text=True).stdout
lines = [re.fullmatch(r"\w+ (\w) (.*?)(?:@@?([\w.]+))?", line).groups() for line in listing.splitlines()]
node = "PERSIA_METRICS_" + ".".join(version.split(".")[:2])
assert {name for kind, name, _ in lines if kind == "A"} <= {node}, lines
wrong = [name for kind, name, of in lines if kind != "A" and of != node]
assert not wrong, f"exported, but not with the version {node}: " + "; ".join(wrong)
of_classes = ("vtable for ", "typeinfo for ", "typeinfo name for ")
symbols = [name for kind, name, _ in lines if kind != "A"]
plain = [next((s[len(prefix) :] for prefix in of_classes if s.startswith(prefix)), s) for s in symbols]
strangers = [s for s in plain if not s.startswith(("persia::metrics::abi_1::", "persia_metrics_"))]
assert not strangers, "exported, but not of the API: " + "; ".join(strangers)
strong = sorted(
    {name for kind, name, _ in lines if name.startswith("vtable") or (kind in "TDBR" and not name.startswith("typeinfo"))}
)
if sys.argv[3:] == ["--write"]:
    GOLDEN.write_text("\n".join(strong) + "\n")
golden = GOLDEN.read_text().splitlines()
assert strong == golden, f"missing: {set(golden) - set(strong)}; new: {set(strong) - set(golden)}; if that is meant: --write"
print(f"{len(symbols)} symbols, all of the API")
