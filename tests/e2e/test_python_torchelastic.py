"""persia_metrics.torchelastic: the samples of torchelastic's documents with another import line, and our additions."""

import re

import pytest

STREAM = """
import time
import persia_metrics.torchelastic.metrics as metrics

def calculate():
    pass

def my_method():
    ms = metrics.getStream(group="my_app")
    start = time.time()
    calculate()
    end = time.time()

    ms.add_value("calculate_latency", int(end - start))
"""


@pytest.mark.parametrize("handler", ["ConsoleMetricHandler", "ConsoleMetricsHandler"])
def test_document_values_on_the_console(run_python, handler):
    told = run_python(
        f"""{STREAM}
metrics.configure(metrics.{handler}(), group = "torchelastic")
metrics.configure(metrics.{handler}(), group = "my_app")
my_method()
metrics.put_metric("checkpoint.write_latency_ms", 12)
"""
    )
    first, second = told.splitlines()
    assert re.fullmatch(r"\[\d+\.\d+\]\[my_app\]: calculate_latency=0", first)
    assert re.fullmatch(r"\[\d+\.\d+\]\[torchelastic\]: checkpoint.write_latency_ms=12", second)


def test_document_custom_metric_handler(run_python):
    told = run_python(
        """
import persia_metrics.torchelastic.metrics as metrics

class StdoutMetricHandler(metrics.MetricHandler):
    def emit(self, metric_data):
        print(
            f"[{metric_data.timestamp}][{metric_data.group_name}]: {metric_data.name}={metric_data.value}"
        )

metrics.configure(StdoutMetricHandler(), group="my_app")
metrics.getStream("my_app").add_value("my_metric", 1)
"""
    )
    assert re.fullmatch(r"\[\d+\.\d+\]\[my_app\]: my_metric=1\n", told)


def test_document_events(run_python):
    told = run_python(
        """
from persia_metrics.torchelastic.events import Event, record_event, event

event.configure(event.NullEventHandler()) # uses event_type = "torchelastic"
event.configure(event.ConsoleEventHandler(), event_type = "foo")

def execute():
  event = Event(name="test_event", event_type="foo")
  # The code below will be processed by the ConsoleEventHandler
  record_event(event)

execute()
record_event(Event("silent"))

from persia_metrics.torchelastic.events import record

def execute():
  metadata = {'key':'value'}
  record(event_name="test", event_type="console", metadata=metadata)

execute()
event.configure(event.ConsoleEventHandler(), "console")
execute()

from persia_metrics.torchelastic.events import EventHandler

class StdoutEventHandler(EventHandler):
   def record(self, event):
       print(f"[{event.event_type}]: event_name: {event.name}")

event.configure(StdoutEventHandler(), event_type="stdout_events")
record("mine", "stdout_events")
"""
    )
    foo, console, mine = told.splitlines()
    assert foo == '{"name": "test_event", "type": "foo", "metadata": {}, "timestamp": 0}'
    assert re.fullmatch(r'{"name": "test", "type": "console", "metadata": {"key": "value"}, "timestamp": \d{13}}', console)
    assert mine == "[stdout_events]: event_name: mine"


def test_a_stream_keeps_the_handler_that_its_group_had(run_python):
    told = run_python(
        """
import persia_metrics.torchelastic.metrics as metrics
class Named(metrics.MetricHandler):
    def __init__(self, name):
        self.name = name
    def emit(self, data):
        print(self.name, *data[1:])
before = metrics.getStream("g")
metrics.configure(Named("default"))
metrics.configure(Named("other"), "h")
before.add_value("n", 1)
metrics.getStream("g").add_value("n", 2)
metrics.put_metric("n", 3, "h")
metrics.put_metric("n", 4)
"""
    )
    assert told.splitlines() == ["default g n 2", "other h n 3", "default torchelastic n 4"]


def test_prof_and_profile(run_python):
    told = run_python(
        """
import warnings
import persia_metrics.torchelastic.metrics as metrics
class Collect(metrics.MetricHandler):
    def emit(self, data):
        value = type(data.value).__name__ if data.name.endswith("ms") else data.value
        print(data.group_name, data.name, value)
metrics.configure(Collect())

@metrics.prof
def plain(a, b=2):
    "A doc."
    return a + b
@metrics.prof(group="agent")
def fails():
    raise KeyError
class Job:
    @metrics.prof
    def step(self):
        return "step"
assert plain(1, b=3) == 4 and plain.__name__ == "plain" and plain.__doc__ == "A doc."
try:
    fails()
except KeyError:
    print("raised")
Job().step()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    @metrics.profile("old")
    def deprecated():
        pass
    deprecated()
    metrics.publish_metric("old", "n", 1)
print(*(warning.category.__name__ for warning in caught))
"""
    )
    assert told.splitlines() == [
        *("torchelastic __main__.plain.success 1", "torchelastic __main__.plain.duration.ms int"),
        *("agent __main__.fails.failure 1", "agent __main__.fails.duration.ms int", "raised"),
        *("torchelastic Job.step.success 1", "torchelastic Job.step.duration.ms int"),
        *("old deprecated.success 1", "old deprecated.duration.ms int", "old n 1"),
        "DeprecationWarning UserWarning",
    ]


def test_prof_of_what_has_no_name(run_python):
    told = run_python(
        """
import functools
import persia_metrics.torchelastic.metrics as metrics
class Collect(metrics.MetricHandler):
    def emit(self, data):
        print(data.name)
metrics.configure(Collect())
class Model:
    def __call__(self):
        return "called"
print(metrics.prof(functools.partial(functools.partial(len), "four"))())
print(metrics.prof(Model())())
print(metrics.profile()(functools.partial(len, "four"))())
"""
    )
    names = [f"{name}.{what}" for name in ("builtins.len", "__main__.Model", "builtins.len") for what in ("success", "duration.ms")]
    printed = [line for line in told.splitlines() if "Warning" not in line and "profile()" not in line]
    assert printed == [*names[:2], "4", *names[2:4], "called", *names[4:], "4"]


def test_events_in_json(run_python):
    told = run_python(
        """
from persia_metrics.torchelastic.events import Event
event = Event("n", "t", {"a": [1, None]}, 5)
assert event == Event("n", event_type="t", metadata={"a": [1, None]}, timestamp=5)
assert Event.deserialize(event.serialize()) == event == Event.deserialize(event)
event.event_type = "u"
print(event, event.type)
"""
    )
    assert told == '{"name": "n", "type": "u", "metadata": {"a": [1, null]}, "timestamp": 5} u\n'


def test_events_of_the_later_releases(run_python):
    told = run_python(
        """
import json
from persia_metrics.torchelastic import events
from persia_metrics.torchelastic.events import Event, EventSource, _get_or_create_logger
event = Event("n", EventSource.AGENT, 5, {"a": 1})
assert event == Event(name="n", source=EventSource.AGENT, metadata={"a": 1}, timestamp=5) == Event.deserialize(event.serialize())
assert Event("n", EventSource.WORKER, metadata={"a": 1}).timestamp == 0 and Event("n", EventSource.WORKER, 5).metadata == {}
assert Event.deserialize(event.serialize()).source is EventSource.AGENT and event.type == "torchelastic.agent"
assert json.loads(str(event)) == {"name": "n", "source": "AGENT", "timestamp": 5, "metadata": {"a": 1}}
events.record(event)
events.record(event, "null")
events.record(event, "console")
events.record(event=event, destination="console")
try:
    events.record(event, "nowhere")
except KeyError:
    print("no such destination")
(handler,) = _get_or_create_logger("null").handlers
print(type(handler).__name__)
"""
    )
    shown = '{"name": "n", "source": "AGENT", "metadata": {"a": 1}, "timestamp": 5}'
    assert sorted(told.splitlines()) == sorted([shown, shown, "no such destination", "NullHandler"])


def test_rendezvous_events(run_python):
    told = run_python(
        """
import logging
from persia_metrics.torchelastic import events
from persia_metrics.torchelastic.events import NodeState, RdzvEvent, construct_and_record_rdzv_event, handlers
class Show(logging.Handler):
    def emit(self, record):
        event = RdzvEvent.deserialize(record.getMessage())
        assert RdzvEvent.deserialize(event) is event and RdzvEvent.deserialize(str(event)) == event
        print(event.name, event.run_id, event.node_state.name, event.rank, "KeyError" in event.error_trace)
        assert event.pid > 0 and event.hostname
handlers._log_handlers["dynamic_rendezvous"] = Show()
def joins():
    construct_and_record_rdzv_event("run", "joined", NodeState.RUNNING, rank=3)
joins()
try:
    {}["none"]
except KeyError:
    construct_and_record_rdzv_event("run", "left", NodeState.FAILED, name="leaves")
handlers._log_handlers["dynamic_rendezvous"] = logging.NullHandler()
joins()
"""
    )
    assert told.splitlines() == [
        "program.py:joins run RUNNING 3 False",
        "program.py:leaves run FAILED None True",
    ]


def test_names_that_torchelastics_own_tests_use(run_python):
    told = run_python(
        """
from persia_metrics.torchelastic.metrics.api import _get_metric_name
class Class:
    def method(self):
        pass
def function():
    pass
print(_get_metric_name(function), _get_metric_name(Class.method))
"""
    )
    assert told == "__main__.function Class.method\n"


SIGNATURES = {
    "metrics.api": {
        "configure": ["handler", "group=None"],
        "getStream": ["group"],
        "put_metric": ["metric_name", "metric_value", "metric_group='torchelastic'"],
        "publish_metric": ["metric_group", "metric_name", "metric_value"],
        "prof": ["fn=None", "group='torchelastic'"],
        "profile": ["group=None"],
        "get_elapsed_time_ms": ["start_time_in_seconds"],
        "MetricsConfig": ["params=None"],
        "MetricStream": ["group_name", "handler"],
        "MetricData": ["timestamp", "group_name", "name", "value"],
    },
    "events.api": {
        "configure": ["handler", "event_type=''"],
        "record": ["event_name=None", "event_type='torchelastic'", "metadata=None", "event=None", "destination=None"],
        "record_event": ["event"],
        "Event": ["name", "type='torchelastic'", "metadata=None", "timestamp=0", "event_type=None", "source=None"],
        "RdzvEvent": [
            *("name", "run_id", "message", "hostname", "pid", "node_state"),
            *("master_endpoint=''", "rank=None", "local_id=None", "error_trace=''"),
        ],
    },
    "events": {
        "get_logging_handler": ["destination='null'"],
        "record_rdzv_event": ["event"],
        "construct_and_record_rdzv_event": [
            *("run_id", "message", "node_state", "name=''", "hostname=''"),
            *("pid=None", "master_endpoint=''", "local_id=None", "rank=None"),
        ],
    },
}


@pytest.mark.parametrize("module", SIGNATURES)
def test_signatures_are_torchelastics(run_python, module):
    told = run_python(
        f"""
import inspect
import persia_metrics.torchelastic.{module} as module
for name in {list(SIGNATURES[module])}:
    parameters = inspect.signature(getattr(module, name)).parameters.values()
    print(name, *(p.name if p.default is p.empty else f"{{p.name}}={{p.default!r}}" for p in parameters))
"""
    )
    assert told.splitlines() == [" ".join([name, *parameters]) for name, parameters in SIGNATURES[module].items()]
