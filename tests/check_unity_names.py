"""Finds names in anonymous namespaces by which a unity build would differ from an ordinary one.

A unity build compiles the sources of a target together. There a function of an anonymous namespace becomes an overload of another source's,
and hides a function of that name from a header: a call may silently mean another function. So a name may be declared in the anonymous
namespace of one source of a unit only, and in no header that is compiled with it. Aliases may repeat, if they are the same. It reads lines that
begin a declaration, and ignores macros, enumerators and names of system headers.

Usage: check_unity_names.py BUILD, a finished build with unity sources (build/test). Prints such names, and exits with 1 if there are any.
"""

import collections
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMESPACE = re.compile(r"^(?:inline )?namespace(?: ([\w:]+))? \{")
NAMESPACE_END = re.compile(r"^\}\s+// namespace")
# A namespace of one line, which ends without a comment.
FORWARD = re.compile(r"^namespace [\w:]+ \{\n.*\n\}\n", re.MULTILINE)
ATTRIBUTES = re.compile(r"^(?:\[\[.*?\]\] |alignas\(.*?\) )+")
ALIAS = re.compile(r"^(?:using|namespace) (\w+) =")
TYPE = re.compile(r"^(?:template <.*> )?(?:class|struct|enum(?: class)?|union) (\w+)")
# The word before a parenthesis, brace, bracket, `=` or semicolon, in a declaration that begins in the first column.
VALUE = re.compile(r"^[\w:<>,*&\[\](). ]+?[ *&](\w+)(?:\(|\{|\[| =|;)")


def declarations(path):
    """(name, namespace, whether it is in an anonymous namespace of that one, line) of each declaration of a file in this project's format."""
    scopes = []
    for line in FORWARD.sub("", path.read_text()).splitlines():
        line = ATTRIBUTES.sub("", line)
        if opened := NAMESPACE.match(line):
            scopes.append(opened[1])
        elif NAMESPACE_END.match(line):
            scopes.pop()
        elif scopes and line[:1].isalpha() and not line.startswith(("using namespace", "using ::")):
            if found := ALIAS.match(line) or TYPE.match(line) or VALUE.match(line):
                yield found[1], "::".join(scope for scope in scopes if scope), None in scopes, line


def units(build):
    """The sources and our headers of each unity source."""
    for command in json.loads((build / "compile_commands.json").read_text()):
        unity = Path(command["directory"], command["file"])
        if "/Unity/" not in str(unity):
            continue
        sources = {Path(source) for source in re.findall(r'^#include "(.*)"$', unity.read_text(), re.MULTILINE)}
        output = re.search(r" -o (\S+)", command["command"])[1]
        deps = subprocess.run(["ninja", "-C", build, "-t", "deps", output], capture_output=True, text=True, check=True)
        files = {Path(build, line.strip()).resolve() for line in deps.stdout.splitlines()[1:] if line.strip()}
        yield sources, {file for file in files if file.suffix == ".h" and file.is_relative_to(ROOT)}


def complaints(build):
    for sources, headers in units(build):
        shared = collections.defaultdict(set)
        for header in headers:
            for name, scope, _, _ in declarations(header):
                shared[name].add(scope)
        owners = collections.defaultdict(dict)
        for source in sources:
            for name, scope, anonymous, line in declarations(source):
                if anonymous:
                    owners[name, scope].setdefault(source, line)
        for (name, scope), lines in owners.items():
            places = " and ".join(sorted(os.path.relpath(source, ROOT) for source in lines))
            alias = all(map(ALIAS.match, lines.values())) and len(set(lines.values())) == 1
            if len(lines) > 1 and not alias:
                yield f"{name}: in the anonymous namespaces of {places}"
            if not alias and any(scope == outer or scope.startswith(outer + "::") for outer in shared[name]):
                yield f"{name}: in an anonymous namespace of {places}, and in a header that is compiled with it"


build = Path(sys.argv[1]).resolve()
if not (build / "compile_commands.json").exists() or not any(headers for _, headers in units(build)):
    sys.exit(f"{build}: no finished build with unity sources: ./run build test")
found = sorted(set(complaints(build)))
print("\n".join(found))
sys.exit(bool(found))
