"""Prints three numbers for a JUnit file of pytest or ctest: cases that passed, that failed, and that were not run.

A case counts as not run if pytest skipped it with a message that begins with `needs `: the machine lacks a need of the test
(tests/e2e/needs.py). Any other skipped or disabled case counts as failed.
"""

import sys
import xml.etree.ElementTree as ElementTree


def verdict(case):
    outcomes = {child.tag for child in case} & {"failure", "error", "skipped"}
    # ctest gives each case a status: run, fail, disabled or notrun. Its message of a skip says how the test was skipped, not why.
    if outcomes == {"skipped"} and "status" not in case.attrib and case.find("skipped").get("message", "").startswith("needs "):
        return "not run"
    return "failed" if outcomes or case.get("status", "run") != "run" else "passed"


verdicts = {}
for case in ElementTree.parse(sys.argv[1]).getroot().iter("testcase"):
    name = case.get("classname"), case.get("name")
    # pytest writes a case twice if it fails and its teardown fails too.
    verdicts[name] = "failed" if verdicts.get(name) == "failed" else verdict(case)
print(*(list(verdicts.values()).count(each) for each in ("passed", "failed", "not run")))
