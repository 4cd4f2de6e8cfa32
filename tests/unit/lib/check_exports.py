"""Holds the shared library to exporting its API and nothing else.

usage: check_exports.py SHARED_LIBRARY
"""

import subprocess
import sys

listing = subprocess.run(["nm", "-DC", "--defined-only", sys.argv[1]], check=True, capture_output=True, text=True).stdout
symbols = [line.split(" ", 2)[2] for line in listing.splitlines()]
strangers = [s for s in symbols if not s.startswith("persia::metrics::")]
assert not strangers, "exported, but not of the API: " + "; ".join(strangers)
for wanted in ("Init(", "Counter::Counter(", "Family<persia::metrics::Gauge>::With(", "events::Record(", "internal::tls_lane"):
    assert any(s.startswith("persia::metrics::" + wanted) for s in symbols), f"{wanted} is not exported"
for hidden in ("Registry", "SegmentWriter", "SegmentMemory"):
    assert not any(hidden in s for s in symbols), f"{hidden} is exported"
print(f"{len(symbols)} symbols, all of the API")
