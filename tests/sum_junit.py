"""Prints how many cases of a JUnit file passed and how many did not; one that was skipped did not pass."""

import sys
import xml.etree.ElementTree as ElementTree

cases = failed = 0
for suite in ElementTree.parse(sys.argv[1]).getroot().iter("testsuite"):
    cases += int(suite.get("tests"))
    failed += sum(int(suite.get(kind, 0)) for kind in ("failures", "errors", "skipped", "disabled"))
print(cases - failed, failed)
