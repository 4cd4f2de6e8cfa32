"""Each expression of each dashboard returns data from a real Prometheus, a real PushGateway and real jobs."""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path

import dashboard_rules
import elastic
import pytest
from conftest import BUILD, EMBEDDING_JOB, PYTHON, PYTHON_PACKAGE, Agent, environment
from servers import ROOT, Etcd, Gateway, Process, Prometheus, fetch, free_port, wait_until

sys.path.insert(0, str(ROOT / "dashboards"))
import picture  # noqa: E402

BOARDS = {path.stem: json.loads(path.read_text()) for path in sorted((ROOT / "dashboards").glob("*.json"))}
TRAINING_JOB = "embedding_demo"
# The elastic job has workers that die and restart, the training job tokens: boards of any job have data of both together. Other boards: TRAINING_JOB.
BOTH = f"({TRAINING_JOB}|{elastic.JOB})"
JOBS = {"persia-elastic": elastic.JOB, **dict.fromkeys(["persia-fleet", "persia-job", "persia-rank"], BOTH)}

# A program beside the elastic job, on its instance rep_0: a counter of steps, functions under @prof, entries counted as torchelastic's first releases did,
# and checkpoints, which otherwise only rank 0 writes, on any instance. It has a loss, marks phases, and calls Benchmark AI's emit.
TOOL = """
import time
from persia_metrics import Counter, Gauge, phase, set_step
from persia_metrics.benchmarkai import emit
from persia_metrics.torchelastic.metrics import prof, put_metric

@prof
def evaluate(number):
    time.sleep(0.01)
    if number % 5 == 4:
        raise ValueError(number)

steps = Counter("tool", "steps_total", "Steps of the tool.")
loss = Gauge("tool", "loss", "Loss of the tool.")
Gauge("tool", "first_loss", "Loss of the first step, which a collection may miss.").set(1)
for number in range(30):
    steps.inc()
    loss.set(1 / (1 + number))
    put_metric("evaluate.count", 1)
    put_metric("checkpoint.write_latency_ms", 20 + number)
    try:
        evaluate(number)
    except ValueError:
        pass
    emit({"alexnet.batchsize16.latency": 12.5 + number % 3, "alexnet.batchsize16.throughput": 800 + number})
    set_step(number)
    with phase("forward"):
        time.sleep(0.2)
"""

# A rank with a GPU, beside the training job.
WITH_GPU = """
import time
from persia_metrics import Counter

batches = Counter("beside", "batches_total", "Batches.")
while True:
    batches.inc()
    time.sleep(0.2)
"""

# A process that dies and has no replacement, with a gauge that is NaN.
LOST = """
import os
import signal
import time
from persia_metrics import Gauge

Gauge("lost", "ratio", "A ratio.").set(float("nan"))
time.sleep(2)
os.kill(os.getpid(), signal.SIGKILL)
"""


class Driver:
    """A stand-in for NVIDIA's driver, with two GPUs, for one job. Of its processes, those with `gpu` may use the first one."""

    def __init__(self, directory, job):
        self._description = directory / f"{job}.gpus"
        self._description.write_text("devices 2\nset throttle * 64\n")
        library = directory / f"{job}.driver/libnvidia-ml.so.1"
        library.parent.mkdir()
        library.symlink_to(BUILD / "tests/e2e/gpu/libe2e_nvml_now.so")
        self.environment = {"LD_LIBRARY_PATH": str(library.parent), "NVML_STAND_IN": str(self._description), "CUDA_VISIBLE_DEVICES": ""}
        self.gpu = {**self.environment, "CUDA_VISIBLE_DEVICES": "GPU-00000000-0000-0000-0000-000000000000"}

    def fail(self):
        """One more XID."""
        with self._description.open("a") as file:
            file.write("xid 0 79\n")


class DataRun:
    """The jobs' data."""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A training job, and an elastic job with a killed worker, on one PushGateway. Prometheus keeps running. Read only."""
    directory = tmp_path_factory.mktemp("dashboards")
    segments = {job: Path(tempfile.mkdtemp(prefix="persia-e2e-", dir="/dev/shm")) for job in (TRAINING_JOB, elastic.JOB)}
    drivers = {job: Driver(directory, job) for job in segments}
    fifo = directory / "fifo"
    result = DataRun()

    def agent(job, command, env, *flags):
        address = f"127.0.0.1:{free_port()}"
        env = {**env, **drivers[job].environment}
        usual = [f"--job={job}", f"--gateway={gateway.address}", f"--metrics-dir={segments[job]}", f"--listen={address}", "--push-interval=0.5"]
        return Agent(["exec", *usual, *flags, "--", *command], directory / f"{job}.log", env, address)

    try:
        with Etcd(directory) as etcd, Gateway(directory) as gateway, Prometheus(directory, gateway.address) as result.prometheus:
            result.start = time.time()
            workers = elastic.ElasticJob(directory, segments[elastic.JOB], etcd.address, 2, 3, 400, 0.03, environment())
            with agent(elastic.JOB, workers.command(3), workers.environment) as ranks:
                ranked = wait_until(lambda: workers.training(3), "three workers to train")
                wait_until(lambda: result.prometheus.query("torchelastic_rendezvous_total"), "their first rendezvous in Prometheus")
                os.kill(ranked[1], signal.SIGKILL)
                # Checkpoints are a gauge in the training job: the gateway takes the type that comes first.
                wait_until(lambda: "torchelastic_checkpoint_write_latency_seconds histogram" in gateway.metrics(), "a checkpoint")
                # As in test_demo_job.py: NaNs and a server that forgets, so that each counter counts.
                job = [EMBEDDING_JOB, "--duration=15", "--corpus=/usr/share/common-licenses", "--inject-nan=0.01", "--server-capacity=2000"]
                with agent(TRAINING_JOB, job, environment(), f"--fifo={fifo}") as training:
                    beside = {**workers.environment, "PERSIA_ROLE": "tool", "REPLICA_INDEX": "0", "PYTHONPATH": str(PYTHON_PACKAGE)}
                    beside |= {"BENCHMARK_AI": "fifo", "BENCHMARK_AI_FIFO_FILEPATH": str(fifo), **drivers[elastic.JOB].gpu}
                    (directory / "tool.py").write_text(TOOL)
                    (directory / "with_gpu.py").write_text(WITH_GPU)
                    (directory / "lost.py").write_text(LOST)
                    of_job = {"PERSIA_METRICS_DIR": str(segments[TRAINING_JOB]), "PERSIA_JOB_NAME": TRAINING_JOB}
                    with_gpu = {**beside, **of_job, **drivers[TRAINING_JOB].gpu}
                    lost = {**beside, **of_job, "PERSIA_ROLE": "lost"}
                    with Process([PYTHON, directory / "tool.py"], directory / "tool.log", env=beside) as tool, Process(
                        [PYTHON, directory / "with_gpu.py"], directory / "with_gpu.log", env=with_gpu
                    ), Process([PYTHON, directory / "lost.py"], directory / "lost.log", env=lost):
                        while training.running():
                            for driver in drivers.values():
                                driver.fail()
                            with contextlib.suppress(OSError, http.client.HTTPException):  # not there yet, or gone
                                fetch(training.url + "/metrics")
                            time.sleep(0.3)
                        assert (tool.wait(), training.wait(), ranks.wait(60)) == (0, 0, 0), tool.output() + training.output() + ranks.output()
            ended = time.time()
            wait_until(lambda: scraped_after(result.prometheus, ended + 2), "two scrapes after the end")
            result.end = time.time()
            yield result
    finally:
        for path in segments.values():
            shutil.rmtree(path, ignore_errors=True)


def scraped_after(prometheus, when):
    return float(prometheus.query("timestamp(up)")[0]["value"][1]) > when


# The variables' values in Grafana: "All", one value, and several.
CHOICES = {
    "all": {"job": ".+", "instance": ".+", "metric": "benchmarkai_.+", "own_metric": "tool_loss"},
    "one": {"instance": "rep_0", "metric": "benchmarkai_alexnet_batchsize16_latency"},
    "several": {
        "job": BOTH,
        "instance": "(rep_0|rep_1)",
        "metric": "(benchmarkai_alexnet_batchsize16_latency|benchmarkai_alexnet_batchsize16_throughput)",
    },
}


# A gauge, a counter and a histogram of the jobs: what the job's board asks for differs by type.
OWN_METRICS = ["tool_loss", "tool_steps_total", "lookup_rpc_time_cost"]


def fill_in(run, expression, uid, choice, **values):
    times = {"__rate_interval": "5s", "__interval": "1s", "__interval_ms": "1000", "__range": f"{run.end - run.start:.0f}s"}
    return picture.fill_in(expression, {"job": JOBS.get(uid, TRAINING_JOB), **times, **CHOICES[choice], **values})


def ask(run, expression):
    """The expression's series during the jobs: labels, and the numbers by time."""
    return picture.query_range(run.prometheus.url, expression, run.start, run.end)


EXPRESSIONS = [
    pytest.param(uid, target["expr"], re.findall(r"{{(\w+)}}", target["legendFormat"]), id=f"{uid}-{panel['title']}-{target['refId']}")
    for uid, board in BOARDS.items()
    for panel, target in dashboard_rules.targets(board)
]
ANNOTATIONS = [
    pytest.param(uid, one["expr"], re.findall(r"{{(\w+)}}", one["titleFormat"] + one["textFormat"]), id=f"{uid}-{one['name']}")
    for uid, board in BOARDS.items()
    for one in board["annotations"]["list"]
    if one["enable"] or uid == "persia-training"  # of these jobs, only the training job has events of checkpoints
]


def there_is(run, asked):
    """Whether there is each metric of the machine, and each verdict, that an expression asks for: not every machine has limits,
    adapters, delay accounting, or a cgroup for the job, and not every rank is a straggler or hangs. This Prometheus has no rules."""
    names = r"persia_(?:cgroup|infiniband|network|pressure|process_io_wait)_\w+|persia_(?:straggler|hang)\b|rank:\w+:\w+|ALERTS\w*"
    selectors = set(re.findall(rf"(?:{names})(?:\{{[^}}]*\}})?", asked))
    return all(run.prometheus.query(f"last_over_time({selector}[1h])") for selector in selectors)


@pytest.mark.parametrize("uid, expression, legend", EXPRESSIONS + ANNOTATIONS)
def test_expression_gives_data(run, uid, expression, legend):
    for choice in CHOICES:
        ways = [fill_in(run, expression, uid, choice, own_metric=name) for name in OWN_METRICS if "own_metric" in expression or name == OWN_METRICS[0]]
        series = [one for asked in ways for one in ask(run, asked)]
        assert series or not all(there_is(run, asked) for asked in ways), f"{choice}: {ways}"
        for labels, _ in series:
            assert set(legend) <= set(labels), f"{choice}: {ways}"


@pytest.mark.parametrize("uid", BOARDS)
def test_variables_offer_what_there_is(run, uid):
    offered = {}
    for name, one in dashboard_rules.variables(BOARDS[uid]).items():
        selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", one["query"]["query"]).groups()
        query = urllib.parse.urlencode({"match[]": fill_in(run, selector, uid, "all"), "start": run.start, "end": run.end})
        found = json.loads(fetch(f"{run.prometheus.url}/api/v1/series?{query}")[1])["data"]
        offered[name] = {series[label] for series in found if label in series}
    assert offered.pop("job") == {TRAINING_JOB, elastic.JOB}
    assert "rep_0" in offered.pop("instance")
    names = {"benchmarkai_alexnet_batchsize16_latency", "benchmarkai_alexnet_batchsize16_throughput"}
    if uid == "persia-job":
        own = offered.pop("own_metric")
        assert {"tool_loss", "tool_steps_total", "lookup_rpc_time_cost_bucket", "staleness"} <= own
        assert not [name for name in own if name.startswith(("persia_", "torchelastic_", "benchmarkai_", "push_"))]
    assert offered == {"persia-benchmark": {"metric": names}, "persia-fleet": {"team": set()}}.get(uid, {})


@pytest.mark.parametrize("uid", BOARDS)
def test_marks_are_in_the_time_of_the_job(run, uid):
    """They are milliseconds since 1970, as Grafana expects."""
    (one,) = [one for one in BOARDS[uid]["annotations"]["list"] if one["enable"]]
    for _, points in ask(run, fill_in(run, one["expr"], uid, "all")):
        assert all(1000 * run.start <= value <= 1000 * run.end for _, value in points)


@pytest.mark.parametrize("uid", BOARDS)
def test_a_picture_has_something_in_each_panel(run, uid):
    page = picture.draw(BOARDS[uid], lambda expression: ask(run, fill_in(run, expression, uid, "all")), (run.start, run.end))
    drawn = re.findall(r'class="panel"><h3>(.*?)</h3>(?:<svg[^>]*>(.*?)</svg>)?</div>', page)
    shown = [panel for panel in BOARDS[uid]["panels"] if panel["type"] != "row"]
    assert [title for title, _ in drawn] == [panel["title"] for panel in shown]
    for panel, (title, inside) in zip(shown, drawn):
        has_data = any(there_is(run, fill_in(run, target["expr"], uid, "all")) for target in panel.get("targets", []))
        is_drawn = "<polyline" in inside or "<rect" in inside
        assert is_drawn or panel["type"] not in picture.KINDS or not has_data, title
        assert not is_drawn or panel["type"] in picture.KINDS, title


STATS = [
    pytest.param(uid, target["expr"], id=f"{uid}-{panel['title']}")
    for uid, board in BOARDS.items()
    for panel, target in dashboard_rules.targets(board)
    if panel["type"] == "stat" and "unless on (job)" in target["expr"] and not dashboard_rules.STATE.search(target["expr"])
]


@pytest.mark.parametrize("uid, expression", STATS)
def test_what_warns_has_nothing_of_a_job_that_has_ended(run, uid, expression):
    assert len(STATS) >= 10
    jobs = {series["metric"].get("job") for series in run.prometheus.query(fill_in(run, expression, uid, "all"))}
    assert not jobs & {TRAINING_JOB, elastic.JOB}


def test_what_happened_shows(run):
    """The values are correct too: the kill, the failures of the tool, the values that it emitted."""

    def most(uid, title):
        target = next(target for panel, target in dashboard_rules.targets(BOARDS[uid]) if panel["title"] == title)
        return max(value for _, points in ask(run, fill_in(run, target["expr"], uid, "all")) for _, value in points)

    assert most("persia-elastic", "Ranks that train") == 3
    assert most("persia-elastic", "Restarts left") == 3
    assert 0.9 < most("persia-elastic", "Flakiness") * 4 < 1.1, "one restart of three, as torchelastic counts"
    assert most("persia-training", "Gradients skipped") > 0
    assert most("persia-benchmark", "Names") == 2
    assert most("persia-benchmark", "$metric") == 829
    assert most("persia-fleet", "Jobs that run") >= 1
    assert most("persia-job", "Loss") == 1
    assert most("persia-job", "Ranks") >= 3
