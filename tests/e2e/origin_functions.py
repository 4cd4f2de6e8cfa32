"""The functions of torchelastic that docs/origins.md lists: what each row says, and programs that fail if it is not so.

The first program of a row must succeed with our modules and with torch's, the second one with ours only. Both find the modules
`metrics` and `events`.
"""

METRICS = "torchelastic: metrics"
EARLY, LATER = "torchelastic: events, up to release 0.2.1", "torchelastic: events, later and in torch"

PRELUDE = """
import contextlib, inspect, io, logging, os

def printed(call, *arguments):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        call(*arguments)
    return out.getvalue()

def raises(error, call, *arguments):
    try:
        call(*arguments)
    except error:
        return True

def has_signature(module, there):
    "Whether a function takes the parameters that the cell shows, and needs no others."
    name, _, parameters = there.partition("(")
    exec(f"def origin({parameters}: pass", names := {})
    ours = module
    for part in name.split("."):
        ours = getattr(ours, part) if hasattr(ours, part) else getattr(ours.api, part)
    ours = [p for p in inspect.signature(ours).parameters.values() if p.name != "self"]
    theirs = list(inspect.signature(names["origin"]).parameters.values())
    assert [p.name for p in ours[:len(theirs)]] == [p.name for p in theirs], ours
    assert all(our.default == their.default for our, their in zip(ours, theirs) if their.default is not their.empty), ours
    return all(p.default is not p.empty for p in ours[len(theirs):])

class Kept(metrics.MetricHandler):
    def __init__(self):
        self.values = []
    def emit(self, data):
        self.values.append(tuple(data[1:]))

class Lines(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []
    def emit(self, record):
        self.lines.append(record.getMessage())
"""

FUNCTIONS = {
    METRICS: {
        "`getStream(group)`": (
            "same: bound to the handler that the group has then",
            """
first, second = Kept(), Kept()
metrics.configure(first, "g")
stream = metrics.getStream("g")
metrics.configure(second, "g")
stream.add_value("n", 1)
metrics.getStream("g").add_value("n", 2)
assert (first.values, second.values) == ([("g", "n", 1)], [("g", "n", 2)])
""",
        ),
        "`MetricStream(group_name, handler)`": (
            "same",
            """
kept = Kept()
stream = metrics.api.MetricStream("g", kept)
assert (stream.group_name, stream.handler) == ("g", kept)
""",
        ),
        "`MetricStream.add_value(metric_name, metric_value)`": (
            "same",
            """
kept = Kept()
metrics.api.MetricStream("g", kept).add_value("n", 1.5)
assert kept.values == [("g", "n", 1.5)]
""",
        ),
        "`configure(handler, group=None)`": (
            "same: without a group, for all without a handler of their own",
            """
own, default = Kept(), Kept()
metrics.configure(own, "own")
metrics.configure(default)
for group in ("own", "g", "h"):
    metrics.put_metric("n", 1, group)
assert (own.values, default.values) == ([("own", "n", 1)], [("g", "n", 1), ("h", "n", 1)])
""",
        ),
        "`put_metric(metric_name, metric_value, metric_group='torchelastic')`": (
            "same",
            """
kept = Kept()
metrics.configure(kept)
metrics.put_metric("n", 1)
metrics.put_metric("n", 2, "g")
assert kept.values == [("torchelastic", "n", 1), ("g", "n", 2)]
""",
        ),
        "`publish_metric(metric_group, metric_name, metric_value)`": (
            "same: deprecated",
            """
import warnings
kept = Kept()
metrics.configure(kept)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    metrics.publish_metric("g", "n", 1)
assert kept.values == [("g", "n", 1)] and len(caught) == 1
""",
        ),
        "`prof(fn=None, group='torchelastic')`": (
            "same; also for partials and callable objects",
            """
kept = Kept()
metrics.configure(kept)
@metrics.prof
def works():
    return 3
@metrics.prof(group="g")
def fails():
    raise KeyError
assert works() == 3 and raises(KeyError, fails)
(one, two, three, four) = kept.values
assert one[:2] == ("torchelastic", f"{__name__}.works.success") and three[:2] == ("g", f"{__name__}.fails.failure")
assert one[2] == three[2] == 1 and two[1].endswith("works.duration.ms") and four[1].endswith("fails.duration.ms")
assert type(two[2]) is int
""",
            """
import functools
class Model:
    def __call__(self):
        return 4
assert metrics.prof(functools.partial(len, "four"))() == metrics.prof(Model())() == 4
assert [name for _, name, _ in kept.values[4::2]] == ["builtins.len.success", f"{__name__}.Model.success"]
""",
        ),
        "`profile(group=None)`": (
            "same: deprecated",
            """
import warnings
kept = Kept()
metrics.configure(kept)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    @metrics.profile("g")
    def works():
        pass
    works()
assert [(group, name) for group, name, _ in kept.values] == [("g", "works.success"), ("g", "works.duration.ms")]
assert caught
""",
        ),
        "`get_elapsed_time_ms(start_time_in_seconds)`": (
            "same",
            """
import time
elapsed = metrics.get_elapsed_time_ms(time.time() - 5)
assert type(elapsed) is int and 5000 <= elapsed < 65_000
""",
        ),
        "`MetricData(timestamp, group_name, name, value)`": (
            "same",
            """
assert metrics.MetricData(1.5, "g", "n", 2) == (1.5, "g", "n", 2) and metrics.MetricData(1.5, "g", "n", 2).value == 2
""",
        ),
        "`MetricHandler.emit(metric_data)`": ("same: abstract", "assert raises(TypeError, metrics.MetricHandler)\n"),
        "`ConsoleMetricHandler()`": (
            "same; also `ConsoleMetricsHandler`",
            """
data = metrics.MetricData(1574213883.4182858, "my_app", "my_metric", 3)
assert printed(metrics.ConsoleMetricHandler().emit, data) == "[1574213883.4182858][my_app]: my_metric=3\\n"
""",
            "assert metrics.ConsoleMetricsHandler is metrics.ConsoleMetricHandler\n",
        ),
        "`NullMetricHandler()`": (
            "same; also `NullMetricsHandler`",
            "assert printed(metrics.NullMetricHandler().emit, metrics.MetricData(1, 'g', 'n', 1)) == ''\n",
            "assert metrics.NullMetricsHandler is metrics.NullMetricHandler\n",
        ),
        "`MetricsConfig(params=None)`": (
            "same",
            "assert metrics.MetricsConfig().params == {} and metrics.MetricsConfig({'a': 'b'}).params == {'a': 'b'}\n",
        ),
        "`initialize_metrics(cfg=None)`": (
            "same: does nothing",
            "assert metrics.initialize_metrics(metrics.MetricsConfig()) is None\n",
        ),
        "`_get_metric_name(fn)`": (
            "same",
            """
class Class:
    def method(self):
        pass
def function():
    pass
names = [metrics.api._get_metric_name(each) for each in (function, Class.method)]
assert names == [f"{__name__}.function", "Class.method"]
""",
        ),
    },
    EARLY: {
        "`Event(name, type='torchelastic', metadata=None, timestamp=0)`": (
            "same; also `event_type`, of its samples",
            "",
            """
event = events.Event("n", "t", {"a": 1}, 5)
assert (event.name, event.type, event.metadata, event.timestamp) == ("n", "t", {"a": 1}, 5)
assert events.Event("n", event_type="t", metadata={"a": 1}, timestamp=5) == event and event.event_type == "t"
assert events.Event("n").type == "torchelastic" and events.Event("n").timestamp == 0
""",
        ),
        "`EventHandler.record(event)`": ("same: abstract", "", "assert raises(TypeError, events.EventHandler)\n"),
        "`ConsoleEventHandler()`": (
            "prints JSON; there `[timestamp] type:name`",
            "",
            """
shown = printed(events.ConsoleEventHandler().record, events.Event("n", "t", {"a": 1}, 5))
assert shown == '{"name": "n", "type": "t", "metadata": {"a": 1}, "timestamp": 5}\\n'
""",
        ),
        "`NullEventHandler()`": ("same", "", "assert printed(events.NullEventHandler().record, events.Event('n')) == ''\n"),
        "`configure(handler, event_type='')`": (
            "without a type, for `torchelastic`, as its sample says; its code: for all types without a handler",
            "",
            """
events.configure(events.ConsoleEventHandler())
assert "n" in printed(events.record, "n") and printed(events.record, "n", "other") == ""
events.configure(events.ConsoleEventHandler(), "other")
assert "n" in printed(events.record, "n", "other")
""",
        ),
        "`record_event(event)`": (
            "same",
            "",
            """
events.configure(events.ConsoleEventHandler(), event_type="foo")
assert '"timestamp": 5' in printed(events.record_event, events.Event("n", "foo", timestamp=5))
""",
        ),
        "`record(event_name, event_type='torchelastic', metadata=None)`": (
            "same: with the current time",
            "",
            """
import json, time
events.configure(events.ConsoleEventHandler(), event_type="foo")
event = json.loads(printed(events.record, "n", "foo", {"key": "value"}))
assert abs(event.pop("timestamp") - time.time() * 1000) < 60_000
assert event == {"name": "n", "type": "foo", "metadata": {"key": "value"}}
""",
        ),
    },
    LATER: {
        "`EventSource`": (
            "same",
            "assert [(source.name, source.value, source == source.value) for source in events.EventSource] == [\n"
            "    ('AGENT', 'AGENT', True), ('WORKER', 'WORKER', True)\n]\n",
        ),
        "`Event(name, source, timestamp=0, metadata={})`": (
            "same; counted with the type `torchelastic.agent` or `torchelastic.worker`",
            """
AGENT = events.EventSource.AGENT
event = events.Event("n", AGENT, 5, {"a": 1})
assert event == events.Event(name="n", source=AGENT, metadata={"a": 1}, timestamp=5)
assert (event.name, event.source, event.timestamp, event.metadata) == ("n", AGENT, 5, {"a": 1})
assert (events.Event("n", AGENT).timestamp, events.Event("n", AGENT).metadata) == (0, {})
""",
            """
assert event.type == "torchelastic.agent"
assert events.Event("n", events.EventSource.WORKER).type == "torchelastic.worker"
""",
        ),
        "`Event.serialize()`, `Event.deserialize(data)`, `str(event)`": (
            "same",
            """
import json
event = events.Event("n", events.EventSource.WORKER, 5, {"a": 1})
assert event.serialize() == str(event)
assert json.loads(str(event)) == {"name": "n", "source": "WORKER", "timestamp": 5, "metadata": {"a": 1}}
assert events.Event.deserialize(event.serialize()) == events.Event.deserialize(event) == event
""",
        ),
        "`EventMetadataValue`": (
            "same",
            """
from typing import Union
assert events.EventMetadataValue == Union[str, int, float, bool, None]
""",
        ),
        "`record(event, destination='null')`": (
            "same; release 0.2.2 had the default `console`",
            """
null, console = Lines(), Lines()
events._get_or_create_logger("null").addHandler(null)
events._get_or_create_logger("console").addHandler(console)
event = events.Event("n", events.EventSource.AGENT)
events.record(event)
events.record(event, "console")
events.record(event=event, destination="console")
assert (null.lines, console.lines) == ([event.serialize()], [event.serialize()] * 2)
""",
        ),
        "destinations `null`, `console`": (
            "same",
            """
assert type(events.get_logging_handler("null")) is logging.NullHandler
assert type(events.get_logging_handler("console")) is logging.StreamHandler
""",
        ),
        "`get_logging_handler(destination='null')`": (
            "same",
            """
assert events.get_logging_handler() is events.get_logging_handler("null")
assert raises(KeyError, events.get_logging_handler, "nowhere")
""",
        ),
        "`_get_or_create_logger(destination='null')`": (
            "same; the logger has another name",
            """
logger = events._get_or_create_logger("console")
assert logger is events._get_or_create_logger("console") and not logger.propagate
assert logger.handlers == [events.get_logging_handler("console")]
""",
            "assert logger.name == 'persia-metrics-events-console'\n",
        ),
        "`NodeState`": (
            "same",
            """
names = ["INIT", "RUNNING", "SUCCEEDED", "FAILED"]
assert [(state.name, state.value) for state in events.api.NodeState] == [(name, name) for name in names]
""",
        ),
        "`RdzvEvent(name, run_id, message, hostname, pid, node_state, master_endpoint='', rank=None, local_id=None, "
        "error_trace='')`": (
            "same",
            """
event = events.api.RdzvEvent("n", "run", "joined", "host", 1, events.api.NodeState.RUNNING)
assert events.api.RdzvEvent.deserialize(event.serialize()) == events.api.RdzvEvent.deserialize(event) == event
""",
        ),
        "`record_rdzv_event(event)`": (
            "same",
            """
kept = Lines()
events._get_or_create_logger("dynamic_rendezvous").addHandler(kept)
event = events.api.RdzvEvent("n", "run", "joined", "host", 1, events.api.NodeState.RUNNING)
events.record_rdzv_event(event)
assert kept.lines == [event.serialize()]
""",
        ),
        "`construct_and_record_rdzv_event(run_id, message, node_state, name='', hostname='', pid=None, master_endpoint='', "
        "local_id=None, rank=None)`": (
            "same",
            """
import json
kept = Lines()
events.handlers._log_handlers["dynamic_rendezvous"] = kept
def joins():
    events.construct_and_record_rdzv_event("run", "joined", events.api.NodeState.RUNNING, rank=3)
joins()
(event,) = map(json.loads, kept.lines)
assert event["name"].endswith(":joins") and (event["rank"], event["pid"], event["error_trace"]) == (3, os.getpid(), "")
""",
        ),
    },
}
