"""Counts the lines of code of the product by room, with cloc: `./run lines`.

A room is a folder of `agent` or `lib/src`, or another folder of `lib`. Code is C++, Python, JavaScript, CSS and HTML without empty lines and comments; what
builds it and documents it does not count. The largest file is of all these.
"""

import collections
import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = ("C++", "C/C++ Header", "C", "Python", "JavaScript", "CSS", "HTML")
CXX = (".h", ".cc", ".c")


def room(name):
    parts = name.split("/")[:-1]
    return "/".join(parts[: 3 if parts[:2] == ["lib", "src"] else 2])


def main():
    names = subprocess.run(["git", "ls-files", "lib", "agent"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    command = ["cloc", "--list-file=-", "--json", "--by-file", "--skip-uniqueness", f"--include-lang={','.join(LANGUAGES)}"]
    counted = json.loads(subprocess.run(command, input=names, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    code = {name: row["code"] for name, row in counted.items() if name not in ("header", "SUM")}
    rooms = collections.defaultdict(list)
    for name in code:
        rooms[room(name)].append(name)
    print("| room | code | files | largest |\n|---|---|---|---|")
    for each, files in sorted(rooms.items()):
        largest = max(files, key=code.get)
        print(f"| {each} | {sum(code[name] for name in files):,} | {len(files)} | {largest.rpartition('/')[2]}, {code[largest]} |")
    cxx = [name for name in code if name.endswith(CXX)]
    print(f"\n{sum(code.values()):,} lines of code in {len(code)} files; of C++ {sum(code[name] for name in cxx):,} in {len(cxx)}")


if __name__ == "__main__":
    main()
