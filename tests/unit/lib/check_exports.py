"""Holds the shared library to exporting its API and nothing else.

usage: check_exports.py SHARED_LIBRARY
"""

import subprocess
import sys

listing = subprocess.run(["nm", "-DC", "--defined-only", sys.argv[1]], check=True, capture_output=True, text=True).stdout
symbols = [line.split(" ", 2)[2] for line in listing.splitlines()]
of_classes = ("vtable for ", "typeinfo for ", "typeinfo name for ")
plain = [next((s[len(prefix) :] for prefix in of_classes if s.startswith(prefix)), s) for s in symbols]
# GCC 14 puts a constructor's requires clause into its name, which nm cannot demangle: such a name begins with its namespace mangled.
of_api = ("persia::metrics::", "persia_metrics_", "_ZN6persia7metrics")
strangers = [s for s in plain if not s.startswith(of_api)]
assert not strangers, "exported, but not of the API: " + "; ".join(strangers)
for wanted in ("Init(", "Counter::Counter(", "Family<persia::metrics::Gauge>::With(", "events::Record(", "internal::tls_lane"):
    assert any(s.startswith("persia::metrics::" + wanted) for s in symbols), f"{wanted} is not exported"
assert "persia_metrics_counter_add" in symbols and "vtable for persia::metrics::MetricHandler" in symbols
for hidden in ("Registry", "SegmentWriter", "SegmentFile"):
    assert not any(hidden in s for s in symbols), f"{hidden} is exported"
print(f"{len(symbols)} symbols, all of the API")
