"""The table's rows: measurements, peers and limits. Bold rows are for users; the others guard them."""

from bench_table import Demand, Row, least, median

CPP = "prometheus-cpp"


# The least that a processor needs for the memory accesses of a call: it adds one to a word, adds to a double, or stores a double.
COUNT, SUM, STORE = "static/counter/1/volatile ++", "static/histogram/1/volatile +=", "static/gauge/1/volatile ="


def at_most(limit):
    return Demand("at most", limit)


def at_least(limit):
    return Demand("at least", limit)


def share_of(peer, limit):
    return Demand("share of", limit, peer)


def times(peer, limit):
    return Demand("times", limit, peer)


def hot(what, call, threads, demands, how="static", beside=()):
    # The minimum of two threads may be from a moment in which one of them ran alone.
    return Row(what, f"{how}/{call}/{threads}/ours", "ns", demands, beside=beside, judged_by=least if threads == 1 else median)


def cpp(call, threads, limit):
    return times(f"static/{call}/{threads}/{CPP}", limit)


def of_two(call, control, limit):
    """No slower than one thread, and this many times faster than two with prometheus-cpp."""
    undisturbed = (f"static/{control}/1/apart", f"static/{control}/2/apart")
    return [
        Demand("times", limit, f"static/{call}/2/{CPP}", undisturbed),
        Demand("share of", 1.2, f"static/{call}/1/ours", undisturbed=undisturbed, peer_by=least),
    ]


def hot_rows():
    whole = "counter by whole"
    fetch_add = ("static/counter/1/fetch_add",)
    yield hot("**`Counter::Increment()`**, 1 thread", "counter", 1, [share_of(COUNT, 3.5), cpp("counter", 1, 3)], beside=fetch_add)
    amid = "`Increment()` amid other work, nothing stays in registers"
    yield hot(amid, "counter amid work", 1, [share_of(COUNT, 4), cpp("counter", 1, 3)])
    yield hot("**`Increment(x)`**, varying whole x", whole, 1, [share_of(COUNT, 4.5), cpp(whole, 1, 2.5)])
    yield hot("`Increment(x)`, a varying double", "counter by double", 1, [share_of(COUNT, 8), cpp(whole, 1, 1.5)])
    for what, call in (("**`Increment()`**", "counter"), ("`Increment(x)`, varying whole x", whole)):
        yield hot(f"{what}, 2 threads, one counter", call, 2, of_two(call, call, 3))
        # For comparison with the row above: lanes that share a cache line would slow both. Two threads on one core halve each other's speed.
        apart = f"static/{call}/2/apart"
        yield Row(f"{what}, 2 threads, a counter each", apart, "ns", [share_of(f"static/{call}/1/apart", 2.2)], judged_by=least)
    for what, call in (("`Increment()`", "counter"), ("`Increment(x)`, varying whole x", whole)):
        yield hot(f"{what}, shared library", call, 1, [share_of(COUNT, 4.5)], "shared")
    yield Row("`Counter::Value()`, 8 threads that count between", "static/counter value/8/ours", "ns", [at_most(200)])
    yield hot("two marks of a phase, with the clock", "phase", 1, [share_of("static/phase/1/clock", 2.5)])
    for bounds in (11, 20):
        call = f"histogram/{bounds}"
        yield hot(f"**`Histogram::Observe`**, {bounds} bounds, 1 thread", call, 1, [share_of(SUM, 2.2), cpp(call, 1, 1.5)])
        yield hot(f"`Observe`, {bounds} bounds, 2 threads, one histogram", call, 2, [cpp(call, 2, 3)])
    yield hot("`Histogram::Observe`, native, 321 bounds, 1 thread", "native histogram", 1, [share_of(SUM, 5)])
    yield hot("`Observe` amid other work, 11 bounds", "histogram amid work", 1, [share_of(SUM, 2.2), cpp("histogram/11", 1, 1.5)])
    yield hot("**`Gauge::Set`**, 1 thread", "gauge", 1, [share_of(STORE, 6), cpp("gauge", 1, 1.5)])
    yield hot("`Gauge::Set` amid other work", "gauge amid work", 1, [share_of(STORE, 6), cpp("gauge", 1, 1.5)])
    yield hot("`Gauge::Set`, 2 threads, one gauge", "gauge", 2, of_two("gauge", "counter", 3))
    yield hot("**stream, `Add`** by handle", "stream", 1, [share_of(SUM, 3)])
    lookup = times(f"static/child/1/{CPP}", 2)
    yield hot("`MetricStream::AddValue`, name at each call; peer: a child looked up", "stream by name", 1, [lookup])
    yield hot("stream, (group, name) at each call; the same peer", "stream by names", 1, [lookup])
    yield hot("child of a label set, looked up at each call", "child", 1, [lookup])
    yield hot("event with three metadata entries; the same peer", "event", 1, [share_of(f"static/child/1/{CPP}", 2.5)])
    for call in ("counter", whole, "gauge", "histogram/11", "histogram/20", "stream", "stream by name", "stream by names", "child", "event"):
        yield hot(f"disabled: {call}", call, 1, [share_of(f"static/{call}/1/ours", 1.25)], "disabled")


def python_rows():
    for what, call, bare in (
        ("**`Counter.inc()`**", "inc", "call"),
        ("**`Gauge.set(x)`**", "set", "call with"),
        ("**`Histogram.observe(x)`**", "observe", "call with"),
    ):
        peer = f"python/{call}/prometheus_client"
        demands = [share_of(f"python/bare/{bare}", 2.0), times(peer, 8), times(f"{peer} multiprocess", 20)]
        yield Row(f"Python {what}", f"python/{call}/ours", "ns", demands, judged_by=least)
    yield Row("Python `labels('a').inc()`", "python/labels/ours", "ns", [times("python/labels/prometheus_client", 5)], judged_by=least)
    # Promised: less than prometheus_client's own call, and a fifth of one in its multiprocess mode.
    for what, call in (
        ("**`inc()`**", "inc"),
        ("**`set(x)`**", "set"),
        ("**`observe(x)` of a histogram**", "observe"),
        ("`observe(x)` of a summary", "observe of a summary"),
        ("`labels('a').inc()`", "labels"),
    ):
        peer = f"python/{call}/prometheus_client"
        demands = [times(peer, 3), times(f"{peer} multiprocess", 5)]
        yield Row(f"prometheus_client with the hook: {what}", f"python/{call}/hook", "ns", demands, judged_by=least)
    for call in ("add_value", "put_metric", "emit"):
        yield Row(f"Python `{call}`", f"python/{call}/ours", "ns", [at_most({"add_value": 250}.get(call, 600))], judged_by=least)


def torch_rows():
    # 0.5 % of a step of 5 ms.
    for kind, what in (("alone", "**PyTorch in phases**: what a step of 11 modules takes longer, processor time"), ("ddp", "the same in a rank with DistributedDataParallel")):
        yield Row(what, f"torch/{kind}/added", "us", [at_most(25)])


# The dimension, its name in bench_growth, and its largest size there.
GROWTH = (
    ("series of a process", "series", 65536),
    ("labels of a series", "labels", 32),
    ("labels and series of a hostile process", "process_labels", 2048),
    ("labels whose names collide", "colliding_labels", 4096),
    ("families of a process", "families", 16384),
    ("series whose names collide", "colliding_series", 8192),
    ("mapping rules, globs and regular expressions", "rules", 4096),
    ("processes of one instance", "processes", 4096),
    ("numbers of processes of one instance", "ordinals", 16384),
    ("instances", "instances", 4096),
    ("processes that ended in one tick", "ended", 16384),
    ("event records", "events", 8192),
)


def agent_rows():
    yield Row(
        "**collect, merge, render**: 100,000 series of 4 processes, per line",
        "render/100000/4/ours",
        "ns",
        [at_most(60), times(f"render/100000/4/{CPP}", 15)],
        judged_by=least,
    )
    yield Row("the same, allocations of a collection in which all values changed", "allocations/100000/4/ours", "", [at_most(100)])
    yield Row(
        "**agent's processor time for a push** of 100,000 series, per line",
        "push/processor",
        "ns",
        [at_most(80), share_of("push/curl processor", 1.2)],
        judged_by=least,
    )
    yield Row("the same push by the clock, from rendering to the last answer", "push/ours", "ms", [share_of("push/curl", 1.2)])
    scrape = Row("**scrape** of 100,000 series", "scrape/ours", "series/s", [times("scrape/gateway", 10)])
    scrape.more_is_better = True
    yield scrape
    yield Row("agent's processor time for a scrape of them with gzip", "scrape/gzip processor", "ms", [at_most(60)], judged_by=least)
    yield Row("**agent of an idle job**, 100 series every 10 s, RssAnon", "idle/memory", "MiB", [at_most(6)])
    yield Row("the same, of one processor, with a collection each second", "idle/processor", "%", [at_most(0.05)])
    yield Row("a collection of 100,000 series of 4 processes by the agent, all changed", "collect/changed", "ms", [at_most(10)])
    yield Row("the same, unchanged", "collect/unchanged", "ms", [at_most(10)])
    yield Row("agent of 100,000 series that pushes, RssAnon", "memory/pushing", "MiB", [at_most(64)])
    yield Row("the same once it is scraped, too", "memory/scraped", "MiB", [at_most(96)])
    yield Row("pipe of `emit`", "pipe/rate", "lines/s", [at_least(300_000)])
    yield Row("the same, lines lost", "pipe/lost", "", [at_most(0)])
    yield Row("growth with series, 1,000 to 1,000,000: exponent", "exponent/series", "", [at_most(1.1)])
    yield Row("growth with processes, 1 to 100, of 100,000 series: exponent", "exponent/processes", "", [at_most(0.2)])
    for dimension, name, cap in GROWTH:
        first = f"first collection, growth with {dimension}, 1 to {cap:,}: exponent of"
        yield Row(f"{first} time", f"growth/{name}/time", "", [at_most(1.3)])
        yield Row(f"{first} memory", f"growth/{name}/memory", "", [at_most(1.1)])
    yield Row("after 10,000 ended processes, a collection", "ended/10000/ours", "us", [share_of("ended/10/ours", 1.2)])
    per_worker = "a worker's values from the kernel in a collection; peer: its files are read and not parsed"
    yield Row(per_worker, "values/worker", "us", [at_most(50), share_of("values/reads", 2)], judged_by=least)
    yield Row("one reading of the machine: cgroup, pressure, network, filesystems", "values/machine", "us", [at_most(3000)], judged_by=least)
    yield Row("8 GPUs of 8 of 64 workers, in a collection", "values/gpus", "us", [at_most(1000)], judged_by=least)
    yield Row("start of a worker: `Init` and 100 instruments", "start/ours", "ms", [at_most(2)])
    yield Row("10,000 gauges with functions: the job's processor time, of one processor", "callbacks/ours", "%", [at_most(0.1)])


def native_rows():
    for path, what, share in (("protobuf", "in a protobuf scrape, beside the classic form", 1.5), ("remote write", "by remote write", 0.15)):
        name = f"**a native histogram of 65 buckets, {what}**; peer: the classic one of 14 bounds"
        yield Row(name, f"native/{path}/ns/native", "ns", [at_most(2500)], beside=(f"native/{path}/ns/classic",), judged_by=least)
        yield Row("the same, its bytes", f"native/{path}/bytes/native", "", [share_of(f"native/{path}/bytes/classic", share)])
    compressed = "native/remote write/compressed"
    yield Row("the same, compressed", f"{compressed}/native", "", [share_of(f"{compressed}/classic", 0.6)])
    samples = "native/remote write/samples"
    yield Row("the same, samples", f"{samples}/native", "", [at_most(1)], beside=(f"{samples}/classic",))


def remote_rows():
    yield Row(
        "**samples by remote write in 10 s**, the least of three times: 1,000,000 series of ten processes, VictoriaMetrics beside it",
        "remote/samples",
        "",
        [at_least(1_000_000)],
    )
    yield Row("the same, dropped", "remote/dropped", "", [at_most(0)])
    yield Row("the same, processor time of the agent", "remote/processor", "s", [at_most(5)])
    yield Row("the same, processor time of VictoriaMetrics", "remote/database", "s", [])
    yield Row("the same, bytes a sample", "remote/bytes", "", [at_most(30)])
    yield Row("the same, RssAnon of the agent", "remote/memory", "MiB", [at_most(1024)])


def demo_rows():
    yield Row("**the demo job with metrics against without**, processor time", "demo/overhead", "%", [])
    yield Row("the same, upper end of the mean's 95 % interval", "demo/upper", "%", [at_most(2)])


def screens_rows():
    yield Row("**the agent's page** of 1,000 workers and 1,000 families in Chromium: the longest task in half a minute", "page/task", "ms", [at_most(100)])
    yield Row("the same task, processor time", "page/task processor", "ms", [at_most(100)])
    yield Row("the same, of one processor", "page/busy", "%", [])
    yield Row("the same, private memory of its process", "page/memory", "MB", [at_most(150)])
    yield Row("the same, until all is on the screen", "page/shown", "s", [])
    yield Row("**`top` with 100 agents** of 8 ranks: until a change is shown", "top/delay", "s", [at_most(1)])
    yield Row("the same, peak memory", "top/memory", "MiB", [at_most(64)])
    yield Row("the same, of one processor", "top/processor", "%", [])


# Each with the measurements it needs.
SUITES = {"hot": hot_rows, "python": python_rows, "torch": torch_rows, "agent": agent_rows, "native": native_rows, "remote": remote_rows,
          "demo": demo_rows, "screens": screens_rows}
