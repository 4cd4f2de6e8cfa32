"""The package's types, checked by mypy --strict: its sources, the documents' samples, and programs that use each part of it."""

import re
import subprocess

import pytest
from conftest import PYTHON, PYTHON_PACKAGE, environment
from servers import ROOT

EVERY_PART = """
import persia_metrics
from persia_metrics import Counter, Enum, Gauge, Histogram, HistogramValue, Info, Stream, TimeCost, catalog, events, read_value, snapshot
from persia_metrics.testing import Scope

result: persia_metrics.InitResult = persia_metrics.init(job_name="j", labels={"zone": "a"})
family: Counter = Counter("g", "c", "Help.", ["feat"], unit="bytes")
family.labels("x").inc()
family.labels(feat=1).inc(0.5)
family.remove("x")
family.remove_by_labels({"feat": 1})
family.clear()
number: float = family.labels("x").value()
level: Gauge = Gauge("g", "level", merge="max")
level.set(True)
level.unset()
last: float | None = level.value()
histogram = Histogram("g", "h", bounds=[1, 2])
value: HistogramValue = histogram.value()
total: int = value.count
cost: TimeCost = catalog.lookup_rpc_time_cost()
cost.observe(1)
misses: Counter = catalog.nan_count().labels("x")
stream = Stream("g", "s")
events.record("type", "name", {"n": 1})
times: int = events.count("type", "name")
again: int = persia_metrics.events.count("type", "name") + len(persia_metrics.catalog.ENTRIES)
level.set_function([1].__len__)
family.labels("x").set_function(lambda: 0.5)
level.set_function(None)
persia_metrics.set_callback_period(0.5)
Info("g", "i", label_names=["part"]).labels("x").info({"version": "1"})
phase: Enum = Enum("g", "phase", states=["a", "b"])
phase.state("a")
now: str | None = phase.value()
last_time: float | None = cost.value().last
added: float = stream.value().sum
one: float | None = read_value("g", "c", {"feat": "x"})


@histogram.time()
async def step(batch: list[int]) -> float:
    with level.track_inprogress(), misses.count_exceptions(KeyError):
        return 0.5


async def main() -> float:
    return await step([1])


with Scope() as scope:
    stream.add(5)
seen = scope.value("g", "s")
for series in snapshot():
    name: str = series.name
"""

CLIENT = """
import persia_metrics.prometheus_client as prometheus_client
from persia_metrics.bridge import RegistryCopy
from persia_metrics.prometheus_client import REGISTRY, CollectorRegistry, Counter, Enum, Gauge, Histogram, Info, Summary, install
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from typing import Iterable

counter = Counter("requests", "Requests.", ["code"], namespace="my")
counter.labels(200).inc(1, {"trace": "x"})
gauge = Gauge("level", "Level.", multiprocess_mode="livesum")
gauge.set_function(lambda: 3)
Summary("s", "S.", registry=CollectorRegistry()).observe(1)
Histogram("h", "H.", buckets=(1, 2)).observe(0.5)
Info("i", "I.").info({"a": "b"})
Enum("e", "E.", states=["a", "b"]).state("a")


class Custom(Collector):
    def collect(self) -> Iterable[Metric]:
        yield GaugeMetricFamily("g", "G.", value=1)


@counter.labels("x").count_exceptions()
def work(n: int) -> str:
    return "x" * n


text: str = work(3)
REGISTRY.register(Custom())
value: float | None = REGISTRY.get_sample_value("g")
body: bytes = prometheus_client.generate_latest()
copy = RegistryCopy(CollectorRegistry(), interval=0.5, counted_by_others=False)
copy.close()
hooked: bool = install() and prometheus_client.install()
"""

WRONG = {
    'persia_metrics.Counter("g", "c").inc("x")': "arg-type",
    'persia_metrics.Counter("c")': "call-arg",
    'persia_metrics.Counter("c", "n", group="g")': "misc",
    'persia_metrics.Gauge("g", "c").observe(1)': "attr-defined",
    'persia_metrics.Counter("g", "c", label_names=5)': "arg-type",
    "persia_metrics.catalog.nan_count().set(1)": "attr-defined",
    'persia_metrics.events.record("type")': "call-arg",
    'x: int = persia_metrics.Gauge("g", "c").value()': "assignment",
    'prometheus_client.Counter("c")': "call-arg",
    'prometheus_client.Counter("c", "C.").inc(1, exemplar=3)': "arg-type",
    'prometheus_client.Gauge("g", "G.").set_function(3)': "arg-type",
    'persia_metrics.Counter("g", "c").set_function(3)': "arg-type",
    'persia_metrics.Enum("g", "e")': "call-arg",
}


def mypy(directory, *arguments):
    """Exit code and output. The cache is in the test's folder."""
    command = [PYTHON, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", directory / "cache", "--config-file", directory / "mypy.ini", *arguments]
    env = environment(MYPYPATH=str(PYTHON_PACKAGE))
    done = subprocess.run(command, env=env, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """A folder with mypy's cache of the package, which has no errors of its own."""
    folder = tmp_path_factory.mktemp("mypy")
    # Reading all of torch takes minutes, and its types are not ours. Without torch the result is the same.
    (folder / "mypy.ini").write_text("[mypy]\n[mypy-torch.*]\nfollow_imports = skip\nignore_missing_imports = true\n")
    assert mypy(folder, "-p", "persia_metrics") == (0, "")
    return folder


def test_programs_have_types(checked):
    programs = {"every_part.py": EVERY_PART, "client.py": CLIENT}
    for document in ("README.md", "lib/python/README.md", "docs/api.md"):
        (programs[document.replace("/", "_").replace(".md", ".py")],) = re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.S)
    for name, text in programs.items():
        (checked / name).write_text(text)
    assert mypy(checked, *programs) == (0, "")


def test_wrong_calls_have_errors(checked):
    head = "import persia_metrics\nimport persia_metrics.catalog\nimport persia_metrics.events\n"
    head += "import persia_metrics.prometheus_client as prometheus_client\n"
    (checked / "wrong.py").write_text(head + "\n".join(WRONG) + "\n")
    code, output = mypy(checked, "wrong.py")
    first = head.count("\n") + 1
    found = {int(line): kind for line, kind in re.findall(r"^wrong\.py:(\d+): error: .* \[([\w-]+)\]$", output, re.M)}
    assert code == 1
    assert found == {first + i: kind for i, kind in enumerate(WRONG.values())}, output
