"""docs/origins.md: each row is held by a test that runs the package or the agent.

The programs of origin_functions.py hold the rows about functions of torchelastic. Those that torch has too run with torch as well.
"""

import json
import re
import subprocess

import pytest
import test_demo_job
import test_pipe
import test_python_benchmarkai
import test_python_export
import test_python_torchelastic
from conftest import AGENT, PYTHON, PYTHON_PACKAGE, Samples, environment
from origin_functions import EARLY, FUNCTIONS, LATER, METRICS, PRELUDE
from servers import ROOT

PERSIA, EMIT, DAEMON = "PersiaML: monitoring", "Benchmark AI: `emit`", "Benchmark AI: its daemon"

HELD = {(section, there): here for section in FUNCTIONS for there, (here, *_) in FUNCTIONS[section].items()}


def holds(section, there, here):
    """Marks a test that holds a row, with what the row says."""

    def mark(test):
        assert (section, there) not in HELD, f"{there} is held twice"
        HELD[section, there] = here
        return test

    return mark


def test_each_row_is_held_as_it_is_written():
    rows = {}
    for section in (ROOT / "docs/origins.md").read_text().split("\n## ")[1:]:
        _, _, *cells = re.findall(r"^\|(.*)\|$", section, re.M)
        for there, here in (cell.split(" | ") for cell in cells):
            key = section.splitlines()[0], there.strip()
            assert key not in rows, f"{there} is in two rows"
            rows[key] = here.strip()
    assert rows == HELD


# --- rows that tests of other modules hold

holds(PERSIA, "the 15 metrics of its tables", "same names; a time cost also as `<name>_sec`")(
    test_demo_job.test_gateway_has_help_type_and_labels
)

AI = test_python_benchmarkai
holds(EMIT, "`from benchmarkai import emit`", "`from persia_metrics.benchmarkai import emit`")(AI.test_document_stdout)
holds(EMIT, "`TypeError` for no mapping, `ValueError` for an empty one", "same")(AI.test_wrong_arguments)
holds(EMIT, "`BENCHMARK_AI`, default `stdout`", "same; also `segment`")(test_python_export.test_segment_mode_arrives)
holds(EMIT, "`BENCHMARK_AI=stdout`", "same: a line of Python's JSON")(AI.test_lines_are_pythons_json)
holds(EMIT, "`BENCHMARK_AI=fifo`", "same; a map of more than 4,096 bytes becomes several lines")(
    AI.test_large_maps_are_split_into_lines_that_a_pipe_takes_whole
)
holds(EMIT, "another `BENCHMARK_AI`: `ValueError` at import", "same")(AI.test_unknown_mode_is_refused_when_imported)
holds(
    EMIT,
    "`BENCHMARK_AI_FIFO_FILEPATH`, default `/tmp/benchmark-ai/fifo`",
    "same; by default also `/tmp/benchmark-ai-fifo`, its older default, if only that pipe has a reader",
)(AI.test_the_default_path_is_benchmark_ais_or_the_older_one_if_a_reader_is_there)
for name, default in (("MAX_WAIT_TIME", "10"), ("WAIT_TIME_STEP", "0.5")):
    holds(EMIT, f"`BENCHMARK_AI_FIFO_{name}`, default `{default}`", "same; a text that is no time counts as not set")(
        AI.test_variables_that_say_nothing_are_as_not_set
    )
holds(EMIT, "`FifoNotCreatedInTimeError`", "same; also if the pipe has no reader, for which it waits without end")(
    AI.test_pipe_that_does_not_come_in_time
)
holds(EMIT, "a line on stdout for each step of the wait", "none")(AI.test_first_emit_waits_for_the_pipe)

holds(DAEMON, "creates the pipe, or uses the one that is there", "same")(
    test_pipe.test_nothing_is_lost_when_the_agent_is_killed_between
)
holds(DAEMON, "ends if there is something else at the path", "logs an error, and runs without the pipe")(
    test_pipe.test_what_is_no_pipe_stays_and_costs_the_pipe_alone
)
holds(DAEMON, "ends when the last writer closes the pipe", "reads until the job's end")(
    test_pipe.test_what_clients_emit_arrives_as_its_last_values
)
holds(DAEMON, "`POD_NAME`, `POD_NAMESPACE`: it ends with that pod", "not used: ends by a signal, or with `exec`'s command")(
    test_pipe.test_a_command_finds_the_pipe_and_its_last_words_arrive
)

holds(METRICS, "`import torchelastic.metrics as metrics`", "`import persia_metrics.torchelastic.metrics as metrics`")(
    test_python_torchelastic.test_document_values_on_the_console
)
holds(METRICS, "the default handler ignores values", "it exports them if metrics are enabled")(
    test_python_export.test_handlers_where_metrics_are_on
)
holds(
    EARLY,
    "`from torchelastic.events import ...`, and the name `event`",
    "`from persia_metrics.torchelastic.events import ...`, `event` included",
)(test_python_torchelastic.test_document_events)
holds(
    EARLY,
    "the default handler ignores events",
    "it keeps their records if metrics are enabled; each event is counted with any handler",
)(test_python_export.test_events_count_whatever_their_handler_does)
holds(LATER, "destination `dynamic_rendezvous` ignores events", "counts them, and keeps their records")(
    test_python_export.test_events_of_the_later_releases_count_apart_by_their_source
)


# --- PersiaML and Benchmark AI


@pytest.fixture
def settings(tmp_path):
    """The agent's settings in effect, by key."""

    def look(*flags, file="", **env):
        path = tmp_path / "settings.yaml"
        path.write_text(file)
        env = environment(**({"PERSIA_GLOBAL_CONFIG": str(path)} if file else {}), **env)
        done = subprocess.run(
            [AGENT, "check-config", *flags], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False
        )
        assert done.returncode == 0, done.stderr
        return dict(re.findall(r"^(\w+): +(.*)$", done.stdout, re.M))

    return look


@pytest.fixture
def exposed(run_python, segments):
    """What the agent exposes of a Python program that has ended."""

    def look(source, *flags, **env):
        run_python(source, PERSIA_METRICS_DIR=str(segments), PERSIA_JOB_NAME="job", **env)
        command = [AGENT, "once", "--job=job", f"--metrics-dir={segments}", *flags]
        done = subprocess.run(command, env=environment(**env), capture_output=True, text=True, timeout=30, check=True)
        return Samples(done.stdout)

    return look


@holds(PERSIA, "`PERSIA_GLOBAL_CONFIG`", "same")
@holds(PERSIA, "`PersiaMetricsConfig`, a section of `global_config.yaml`", "same")
@holds(PERSIA, "`PERSIA_METRICS_GATEWAY_ADDR`, default `metrics_gateway:9091`", "same; also a URL")
@holds(PERSIA, "groups by `job`, `instance`, `ip_addr`", "the same, and `role`")
@holds(
    PERSIA,
    "`PERSIA_SOCKET_IFNAME`, default `eth0`: the interface whose address is `ip_addr`",
    "not used: `PERSIA_IP_ADDR`, else the address towards the gateway",
)
def test_a_job_with_the_settings_of_persias_document(settings, gateway, segments, tmp_path):
    file = "PersiaMetricsConfig:\n  enable_metrics: true\n  job_name: your_job_name\n"
    config = tmp_path / "global_config.yaml"
    config.write_text(file)
    env = environment(
        PYTHONPATH=str(PYTHON_PACKAGE),
        PERSIA_GLOBAL_CONFIG=str(config),
        PERSIA_METRICS_GATEWAY_ADDR=f"http://{gateway.address}",
        PERSIA_METRICS_DIR=str(segments),
        PERSIA_METRICS_LISTEN_ADDR="off",
        PERSIA_ROLE="server",
        PERSIA_SOCKET_IFNAME="none",
        REPLICA_INDEX="3",
    )
    train = "from persia_metrics import Counter; Counter('', 'batches', 'Batches.').inc(2)"
    for extra, address in ({}, "127.0.0.1"), ({"PERSIA_IP_ADDR": "10.1.2.3"}, "10.1.2.3"):
        subprocess.run([AGENT, "exec", "--", PYTHON, "-c", train], env={**env, **extra}, check=True, timeout=60)
        labels = {"job": "your_job_name", "instance": "rep_3", "ip_addr": address, "role": "server"}
        assert labels in [group["labels"] for group in gateway.groups()]
        assert gateway.metrics().one("batches", **labels) == 2
    assert settings()["gateway_address"] == "metrics_gateway:9091"
    assert settings(PERSIA_METRICS_GATEWAY_ADDR="https://gw/push")["gateway_address"] == "https://gw/push"


@holds(PERSIA, "`metrics_config` in `common_config`, its later form", "same")
@holds(PERSIA, "`enable_metrics`, default `true`", "same")
@holds(PERSIA, "`job_name`, default `persia_default_jobname`", "default `default`")
@holds(PERSIA, "`push_interval_seconds`, default `10`", "same; also a fraction, or `1m30s`")
@holds(PERSIA, "`push_interval_sec`, which its example has and it ignores", "another name of `push_interval_seconds`")
def test_keys_of_persias_settings(settings):
    def of(**env):
        have = settings(**env)
        return [have[key] for key in ("enable_metrics", "job_name", "push_interval_seconds")]

    assert of() == ["true", "default", "10"]
    values = "enable_metrics: false, job_name: dlrm"
    assert of(file=f"PersiaMetricsConfig: {{{values}, push_interval_seconds: 1m30s}}") == ["false", "dlrm", "90"]
    later = f"common_config: {{job_type: Train, metrics_config: {{{values}, push_interval_sec: 0.5}}}}"
    assert of(file=later) == ["false", "dlrm", "0.5"]


@holds(PERSIA, "`REPLICA_INDEX`, default `0`", 'same: the label `instance="rep_0"`')
@holds(PERSIA, "`RANK`, which overrides `REPLICA_INDEX`", "used if `REPLICA_INDEX` is not set, or [several ranks](ranks.md) share it")
@pytest.mark.parametrize(
    "env, replica", [({}, 0), ({"REPLICA_INDEX": "3"}, 3), ({"RANK": "2"}, 2), ({"REPLICA_INDEX": "3", "RANK": "2"}, 3), ({"OMPI_COMM_WORLD_RANK": "5"}, 5)]
)
def test_the_number_of_a_process_is_its_instance(settings, exposed, env, replica):
    seen = exposed("from persia_metrics import Counter\nCounter('', 'n', 'N.').inc()\n", **env)
    assert seen.one("n", instance=f"rep_{replica}") == 1
    assert settings(**env)["replica"] == str(replica)


@holds(PERSIA, "`REPLICA_SIZE`", "not used")
@holds(PERSIA, "`PERSIA_SCHEDULED_THREAD_POOL_SIZE`, default `1`", "not used")
@holds(DAEMON, "`BACKEND`, default `stdout`, and `BACKEND_ARG_<NAME>`", "`--gateway`, default `metrics_gateway:9091`")
@holds(DAEMON, "`LOGGING_LEVEL`, default `INFO`", "`--log-level`, default `info`")
@holds(DAEMON, "`BENCHMARK_AI_FIFO_FILEPATH`, default `/tmp/benchmark-ai/fifo`", "`--fifo` or `PERSIA_METRICS_FIFO`, default none")
def test_variables_that_the_agent_does_not_use(settings):
    defaults = settings()
    assert [defaults[key] for key in ("gateway_address", "log_level", "fifo")] == ["metrics_gateway:9091", "info", "(none)"]
    for name in ("REPLICA_SIZE", "PERSIA_SCHEDULED_THREAD_POOL_SIZE", "BACKEND", "BACKEND_ARG_TOPIC", "LOGGING_LEVEL", "POD_NAME"):
        assert settings(**{name: "7"}) == defaults, name
    assert settings(BENCHMARK_AI_FIFO_FILEPATH="/a/fifo") == defaults
    instead = settings("--gateway=here:1", "--log-level=debug", "--fifo=/a/fifo")
    assert [instead[key] for key in ("gateway_address", "log_level", "fifo")] == ["here:1", "debug", "/a/fifo"]
    assert settings(PERSIA_METRICS_FIFO="/a/fifo")["fifo"] == "/a/fifo"


@holds(PERSIA, "`create_counter(name, help)`, `create_gauge`, `create_histogram`", "`Counter`, `Gauge`, `Histogram`")
@holds(
    PERSIA,
    "`create_counter_vec`, `create_gauge_vec`, `create_histogram_vec`, with the label `feat`",
    'the same classes, with `["feat"]`',
)
@holds(PERSIA, "buckets of a histogram: 5 ms to 10 s, 11 of them", "also 0.1 ms to 2.5 ms, 5 of them")
def test_metrics_that_persias_manager_creates(exposed):
    seen = exposed(
        """
from persia_metrics import Counter, Gauge, Histogram
Counter("", "counter", "Help.").inc()
Gauge("", "gauge", "Help.").set(2)
Histogram("", "histogram", "Help.").observe(3)
Counter("", "counter_vec", "Help.", ["feat"]).labels("user").inc(4)
Gauge("", "gauge_vec", "Help.", ["feat"]).labels("user").set(5)
Histogram("", "histogram_vec", "Help.", ["feat"]).labels("user").observe(6)
"""
    )
    assert [seen.one(name) for name in ("counter", "gauge", "histogram_sum")] == [1, 2, 3]
    assert [seen.one(f"{name}_vec", feat="user") for name in ("counter", "gauge")] == [4, 5]
    assert seen.one("histogram_vec_sum", feat="user") == 6
    bounds = {float(dict(labels)["le"]) for name, labels in seen if name == "histogram_bucket"}
    persias = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, float("inf")}
    assert bounds - persias == {0.0001, 0.00025, 0.0005, 0.001, 0.0025} and persias < bounds


@holds(EMIT, "`emit(metrics)`", "same")
@pytest.mark.parametrize("mode", ["stdout", "fifo", "segment"])
def test_emit_has_one_argument(run_python, mode):
    show = "import inspect\nfrom persia_metrics.benchmarkai import emit\nprint(*inspect.signature(emit).parameters)\n"
    assert run_python(show, BENCHMARK_AI=mode) == "metrics\n"


@holds(DAEMON, "`CUSTOM_LABEL_<NAME>`", "`--label=<name>=VALUE`")
@holds(DAEMON, "`LOGGING_STREAM`, default `stderr`", "not used: always stderr")
def test_labels_and_log_of_the_agent(exposed, tmp_path):
    count = "from persia_metrics import Counter\nCounter('', 'n', 'N.').inc()\n"
    (labels,) = [dict(labels) for name, labels in exposed(count, "--label=zone=b", CUSTOM_LABEL_ZONE="a") if name == "n"]
    assert labels["zone"] == "b"
    command = [AGENT, "once", f"--metrics-dir={tmp_path}"]
    done = subprocess.run(command, env=environment(LOGGING_STREAM="stdout"), capture_output=True, text=True, timeout=30, check=True)
    assert "no worker's metrics" in done.stderr and "no worker's metrics" not in done.stdout


# --- torchelastic


@holds(
    METRICS,
    "`State`, `train_step`, `train`, `p2p.CoordinatorP2P` of its usage document",
    "not in the package: [`examples/elastic_job`](../examples/elastic_job) has its own",
)
def test_the_elastic_job_has_what_the_package_leaves_out(run_python):
    run_python(
        f"""
import sys
import persia_metrics.torchelastic as torchelastic
assert not {{"State", "train", "p2p"}} & set(dir(torchelastic))
sys.path.insert(0, {str(ROOT / "examples/elastic_job")!r})
from coordinator import Coordinator
from state import MyState, train_step
from train_loop import train
"""
    )


ROWS = [(section, there) for section in FUNCTIONS for there in FUNCTIONS[section]]


def program(section, there, ours):
    """What a row's function does, in ours and in torch's module; with `ours`, also what only ours does."""
    _, common, *more = FUNCTIONS[section][there]
    text = PRELUDE + common + ("".join(more) if ours else "")
    call = re.fullmatch(r"`([\w.]+\([^`]*\))`", there)
    # The arguments of both forms of Event are accepted, and those of both forms of `record`; the early ones are in the signature.
    if call and not there.startswith(("`Event(name, source", "`record(event,")):
        text += f"assert has_signature({'metrics' if section == METRICS else 'events'}, {call[1]!r})\n"
    return text


@pytest.mark.parametrize("section, there", ROWS, ids=[there.split("(")[0].strip("`") for _, there in ROWS])
def test_a_function_does_what_its_row_says(run_python, section, there):
    imports = "import persia_metrics.torchelastic.events as events\nimport persia_metrics.torchelastic.metrics as metrics\n"
    run_python(imports + program(section, there, ours=True))


IN_TORCH = """
import json, os, sys
import torch.distributed.elastic.events as events
import torch.distributed.elastic.metrics as metrics
for row, text in json.load(open(sys.argv[1])).items():
    if os.fork() == 0:
        exec(text)
        os._exit(0)
    if os.wait()[1] != 0:
        print("not so in torch:", row)
for module in (events, events.api, metrics, metrics.api):
    for name, value in vars(module).items():
        if name[0] != "_" and callable(value) and value.__module__.startswith("torch.distributed.elastic"):
            print("torch has", name)
"""


def test_what_is_the_same_in_torch_is_so_and_torch_has_nothing_else(tmp_path):
    same = [(section, there) for section, there in ROWS if section != EARLY and HELD[section, there].startswith("same")]
    assert len(same) > 20
    programs = tmp_path / "programs.json"
    programs.write_text(json.dumps({there: program(section, there, ours=False) for section, there in same}))
    command = [PYTHON, "-c", IN_TORCH, programs]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120, check=True)
    in_table = {name for section, there in HELD if section in (METRICS, LATER) for name in re.findall(r"`(\w+)", there)}
    told = set(done.stdout.splitlines()) - {f"torch has {name}" for name in in_table}
    assert not told, done.stderr
