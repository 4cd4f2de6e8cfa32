"""Odd numbers, names and labels: in each mode all are shown, numbers to the last bit and labels to the byte."""

import json
import math
import struct

import pytest
from conftest import PYTHON, PYTHON_PACKAGE
from modes import MODES

_TINY, _LARGEST = 5e-324, 1.7976931348623157e308
NUMBERS = [
    *(0.0, -0.0, math.nan, math.inf, -math.inf, _TINY, -_TINY, _LARGEST, -_LARGEST),
    2.2250738585072009e-308,  # the largest subnormal
    2.2250738585072014e-308,
    *(1 + 2.0**-52, 1 - 2.0**-53, 1 / 3, 0.1 + 0.2, -1e-5, 1e-7, 1e15, 1e16, 1e17, 1e22, 1e23),
    *(2.0**53 - 1, 2.0**53, 2.0**53 + 2, 2.0**63, 2.0**64 - 2048, 2.0**64, 2.0**1023),
    *(1735689600.123456789, 1.2345678901234567e-290, 123456789012345.67),
]
# What one counter is incremented by, and its sum: whole numbers are added exactly, fractions as doubles.
COUNTS = {
    (2**53, 1): float(2**53 + 1),
    (2**53, 1, 1): float(2**53 + 2),
    (2**63, 2**63 - 1024): float(2**64 - 1024),
    (2**64, 2**64, 1.5): float(2**65 + 1),
    (0.1,) * 10: sum((0.1,) * 10),
    (1e16, 0.5, 0.5): 1e16 + 1,
    (_TINY, _TINY): 2 * _TINY,
    (_LARGEST, 1): _LARGEST,
}
NAMES = [
    *("http.server/duration", "地区", "类型", "9lives", "a-b", "a_b", "a.b", "with space", "rocket 🚀", 'in "quotes"', "back\\slash", "two\nlines", "tab\there"),
    *("__name__", "_", "a:b", "sum", "x_total", "x_bucket", "é", "e\u0301", "x" * 200, "ſ", "İ", "\u202eright", "{}", "a=b,c", "# HELP"),
]
LABELS = {
    "地区": "北京",
    "job": "its own",
    "le": "1.0",
    "quantile": "",
    "__name__": "reserved",
    "instance": "mine",
    "a-b": 'in "quotes"',
    "a_b": "back\\slash",
    "a.b": "two\nlines",
    "9": "\\n",
    "k8s:app": "tab\there",
    "x" * 100: "y" * 1000,
    "emoji 🚀": "🚀 é e\u0301 \u202e \u2028",
    "spaces": "  both ends  ",
    "sharp": "# {}=,",
}


def _hex(numbers):
    return [float(number).hex() for number in numbers]


def _bits(number):
    return "nan" if math.isnan(number) else struct.pack(">d", number).hex()


@pytest.fixture
def odd_job(lone_job):
    """A job whose worker has recorded all of the above, each in a metric of its own, and prints what it reads back."""
    given = {"numbers": _hex(NUMBERS), "counts": [_hex(parts) for parts in COUNTS], "names": NAMES, "labels": list(LABELS.items())}
    script = lone_job.directory / "odd_worker"
    script.write_text(f"""#!{PYTHON}
import json, sys
sys.path.insert(0, {str(PYTHON_PACKAGE)!r})
import persia_metrics as pm
given = json.loads({json.dumps(given)!r})
read = {{}}
for i, number in enumerate(map(float.fromhex, given["numbers"])):
    gauge, stream = pm.Gauge("gauge", f"n{{i}}"), pm.Stream("stream", f"n{{i}}")
    gauge.set(number)
    stream.add(number)
    read[f"gauge_n{{i}}"], read[f"stream_n{{i}}"] = gauge.value(), stream.value().last
for i, parts in enumerate(given["counts"]):
    counter = pm.Counter("count", f"n{{i}}")
    for part in map(float.fromhex, parts):
        counter.inc(part)
    read[f"count_n{{i}}"] = counter.value()
for i, name in enumerate(given["names"]):
    pm.Gauge("named", name).set(1000 + i)
for i, (name, value) in enumerate(given["labels"]):
    pm.Gauge("labelled", f"n{{i}}", "", [name]).labels(value).set(i)
bounds = pm.Histogram("bounds", "n", bounds=[{_TINY!r}, 1 / 3, {_LARGEST!r}])
bounds.observe(0.5)
print("read", json.dumps({{name: number.hex() for name, number in read.items()}}), flush=True)
for line in sys.stdin:
    print("done", line, end="", flush=True)
""")
    script.chmod(0o755)
    lone_job.worker_program = script
    return lone_job


@pytest.mark.parametrize("mode", MODES)
def test_odd_values_are_shown_in_each_mode(odd_job, mode):
    seen = MODES[mode](odd_job)
    seen.worker.tell("ready?")
    samples, log = seen.read()
    expected = {f"{kind}_n{i}": _bits(number) for i, number in enumerate(NUMBERS) for kind in ("gauge", "stream")}
    expected |= {f"count_n{i}": _bits(number) for i, number in enumerate(COUNTS.values())}
    (own,) = (json.loads(line[5:]) for line in seen.worker.output().splitlines() if line.startswith("read "))
    assert {name: _bits(float.fromhex(text)) for name, text in own.items()} == expected
    shown = {name: samples.one(name) for name in expected}
    assert {name: number is not None and _bits(number) for name, number in shown.items()} == expected, log
    named = sorted(value for (name, _), value in samples.items() if name.startswith("named_"))
    assert named == [1000 + i for i in range(len(NAMES))], log
    labelled = {value: dict(labels).values() for (name, labels), value in samples.items() if name.startswith("labelled_")}
    assert [value for i, value in enumerate(LABELS.values()) if value and value not in labelled[i]] == [], log
    assert [labels["le"] for labels in _with_labels(samples, "bounds_n_bucket")] == ["5e-324", "0.3333333333333333", "1.7976931348623157e+308", "+Inf"]
    assert seen.end() == 0


def _with_labels(samples, name):
    return [dict(labels) for (other, labels) in samples if other == name]
