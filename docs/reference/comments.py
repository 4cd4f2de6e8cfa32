"""Prints a header with its comments in Doxygen's form: `///` before a declaration, `///<` after one. Lines keep their numbers.

A comment that is indented by more than two spaces is in a function, and stays. An indented paragraph becomes preformatted text.
"""

import re
import sys

_FORMS = (
    (r"^( {0,2})//(   +)", r"\1///    \2"),
    (r"^( {0,2})//(?!/)", r"\1///"),
    (r"^( {0,2}\w.*[;,\w]) +// ", r"\1  ///< "),
    (r"^/\*", "/**"),
    (r"^ \*(   +)", r" *    \1"),
    (r"^( +\w.*[;,\w]) +/\* ", r"\1 /**< "),
)


def main():
    with open(sys.argv[1], encoding="utf-8") as header:
        text = header.read()
    for ordinary, doxygens in _FORMS:
        text = re.sub(ordinary, doxygens, text, flags=re.MULTILINE)
    # Users do not write the inline namespace, which names the ABI.
    text = re.sub(r"^(inline namespace abi_\d+ \{|\}  // namespace abi_\d+)$", "", text, flags=re.MULTILINE)
    # The first comment is about the header.
    if text.startswith("/**"):
        text = text.replace("*/", "@file */", 1)
    else:
        text = text.replace("#pragma once", "/// @file", 1)
    print(text, end="")


main()
