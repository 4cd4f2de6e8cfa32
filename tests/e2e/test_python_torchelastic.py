"""persia_metrics.torchelastic: the samples of torchelastic's documents with another import line, and our additions."""

import re

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


def test_document_values_on_the_console(run_python):
    told = run_python(
        f"""{STREAM}
metrics.configure(metrics.ConsoleMetricHandler(), group = "torchelastic")
metrics.configure(metrics.ConsoleMetricHandler(), group = "my_app")
my_method()
metrics.put_metric("checkpoint.write_latency_ms", 12)
"""
    )
    first, second = told.splitlines()
    assert re.fullmatch(r"\[\d+\.\d+\]\[my_app\]: calculate_latency=0", first)
    assert re.fullmatch(r"\[\d+\.\d+\]\[torchelastic\]: checkpoint.write_latency_ms=12", second)


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


def test_prof_of_a_partial_an_object_and_a_method(run_python):
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
    @metrics.prof
    def step(self, by):
        return by
print(metrics.prof(functools.partial(len, "four"))())
print(metrics.prof(Model())())
print(Model().step("stepped"))
print(metrics.profile()(functools.partial(len, "four"))())
"""
    )
    names = [f"{name}.{what}" for name in ("builtins.len", "__main__.Model", "Model.step", "builtins.len") for what in ("success", "duration.ms")]
    printed = [line for line in told.splitlines() if "Warning" not in line and "profile()" not in line]
    assert printed == [*names[:2], "4", *names[2:4], "called", *names[4:6], "stepped", *names[6:], "4"]


def test_events_in_json(run_python):
    told = run_python(
        """
from persia_metrics.torchelastic.events import Event, EventSource
assert Event.deserialize(Event("n", EventSource.AGENT).serialize()).source is EventSource.AGENT
event = Event("n", "t", {"a": [1, None]}, 5)
assert Event.deserialize(event.serialize()) == event == Event.deserialize(event)
event.event_type = "u"
print(event, event.type)
assert Event("n", metadata={1: "a", (2, 3): "b", "1": "c"}).serialize().count('"1"') == 1
assert Event.deserialize(Event("n", metadata={1: "a", (2, 3): "b", "1": "c"}).serialize()).metadata == {"1": "c", "(2, 3)": "b"}
"""
    )
    assert told == '{"name": "n", "type": "u", "metadata": {"a": [1, null]}, "timestamp": 5} u\n'


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
