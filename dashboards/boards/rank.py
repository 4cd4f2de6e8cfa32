"""The board of one rank, or of a few that are compared: what it does, its progress, processor, memory, disk and GPU."""

from .grafana import chart, query, stat, states, table
from .jobs import TIME, goodput, steps_of_ranks
from .panels import most
from .promql import RANK, RANK_LEGEND, RATE, age, increase, mean, over, quantile, rate, select, since_change, total_rate, unless_ended

UID = "persia-rank"
TITLE = "Rank"
DESCRIPTION = (
    "One rank, or a few that are compared: state, phases, progress, processor, memory, disk and GPU. "
    "Source: persia_process_*, persia_rank_* and persia_gpu_* of persia-metrics-agent, and the phases and progress that the rank counts by the library."
)
ABOUT = """What `persia-metrics-agent` reads of the rank's processes, what it makes of the rank's phases, and the values of the GPU that belongs to the \
rank. Choose a second instance to compare: a slow rank is busy while the others wait. Its host: {machine}. Its host's GPUs: {gpu}."""
LINKS = {"machine": "persia-machine", "gpu": "persia-gpu"}
VARIABLES = []

PROCESS, PROCESS_LEGEND = RANK + ", process", RANK_LEGEND + " {{process}}"
WAITS = [(None, "green"), (0.1, "yellow"), (0.5, "red")]
FULL = [(None, "green"), (0.85, "yellow"), (0.95, "red")]


def _lines(expressions, legend=RANK_LEGEND):
    """Queries by the words that follow the rank."""
    return [query(expr, f"{legend} {words}".strip()) for words, expr in expressions.items()]


def _of_process(name):
    return total_rate(RANK, f"persia_process_{name}_total")


def overview():
    def now(title, about, unit, expr, thresholds=((None, "green"),), **more):
        return stat(title, about, unit, query(expr, RANK_LEGEND), thresholds, **more)

    hung = unless_ended(over("sum", RANK, f"{select('persia_process_hung')} or {select('persia_process_died')}"))
    speed = unless_ended(steps_of_ranks())
    return [
        now("Processes that run", "Of the rank.", "short", over("sum", RANK, select("persia_process_up"))),
        now(
            "Dead or hung",
            "Processes that died and have no replacement, or whose metrics do not change any more.",
            "short",
            hung,
            [(None, "green"), (1, "red")],
        ),
        now("Step of the rank", "The number of the present step.", "none", most(RANK, select("persia_phase_step"))),
        now("Steps of the rank", "Per second.", "ops", speed),
        now("Memory of the rank", "Resident.", "bytes", over("sum", RANK, select("persia_process_resident_memory_bytes"))),
        now("Cores of the rank", "In use.", "short", _of_process("cpu_seconds")),
    ]


def state():
    meaning = {1: ("up", "green"), 2: ("hung", "orange"), 0: ("ended", "blue"), -1: ("died", "red")}
    up, hung, died = (select(f"persia_process_{what}") for what in ("up", "hung", "died"))
    code = f"{up} + {hung} or {up} - {died} or {up}"
    present = most(RANK + ", phase", select("persia_rank_in_phase_seconds"))
    now = [("unchanged for", since_change()), ("up", up), ("restarts", increase("persia_process_restarts_total"))]
    now = [(column, most(PROCESS, expr)) for column, expr in now]
    ended = most(PROCESS + ", reason", select("persia_process_last_exit_info"))
    exits = over("sum", RANK + ", reason", increase("persia_process_exits_total", range=RATE))
    uptime = most(RANK, age("persia_process_start_time_seconds"))
    unchanged = "Time since a metric of a process last changed. It grows if the process hangs or waits."
    hide = {"job": None}
    return [
        states("Processes", "Whether each process is up, hangs, ended or died.", query(code, PROCESS_LEGEND), meaning),
        chart("Time since last change", unchanged, "s", [query(since_change(), PROCESS_LEGEND)], (12, 8)),
        table("Phase now", "What the rank does, and for how long.", "s", [("since", present)], hide, (12, 6)),
        table("Processes now", "Seconds since the last change, whether it is up, and restarts in the time range.", "none", now, hide, (12, 6)),
        table("How the last processes ended", "Exit code or signal of the last process of each number.", "none", [("seen", ended)], hide, (12, 6)),
        chart("Exits", "Processes that ended, by exit code or signal.", "short", [query(exits, RANK_LEGEND + " {{reason}}")], (6, 6)),
        chart("Age of processes", "Time since the oldest process started. A restart resets it.", "s", [query(uptime, RANK_LEGEND)], (6, 6)),
    ]


def where_the_time_goes():
    of_step = most(RANK + ", phase", select("persia_rank_phase_seconds_per_step"))
    phases = total_rate(RANK + ", phase", "persia_phase_seconds_total")
    duration = mean("persia_phase_duration_seconds", RANK + ", phase")
    redone = over("sum", RANK, increase("persia_rank_redone_steps_total", range=RATE))
    restarts = over("sum", RANK, increase("persia_rank_restarts_total", range=RATE))
    in_phase = RANK_LEGEND + " {{phase}}"
    lost = "Share of the time in down, starting and redone that belongs to restarts."
    return [
        chart(
            "Time by bucket",
            "Share of the time in each bucket of goodput.",
            "percentunit",
            [query(total_rate(RANK + ", bucket", TIME), RANK_LEGEND + " {{bucket}}")],
            stacked=True,
        ),
        chart("Goodput of the rank", "A rank with less waits for data, for others, or was down.", "percentunit", [query(goodput(RANK), RANK_LEGEND)], max=1),
        chart("Time of the rank's step by phase", "As of the last steps. In sync it waits for others.", "s", [query(of_step, in_phase)]),
        chart("Share of time by phase", "Also of a process that is stopped in a phase.", "percentunit", [query(phases, in_phase)]),
        chart("Duration of phases", "Mean of the phases that were left.", "s", [query(duration, in_phase)]),
        chart(
            "Redone steps", "Steps trained again after a restart, since the last checkpoint is older than the failure.", "short", [query(redone, RANK_LEGEND)]
        ),
        chart("Restarts after failures", "Processes that replaced one that had failed.", "short", [query(restarts, RANK_LEGEND)], (12, 7)),
        chart("Repair", lost, "percentunit", [query(total_rate(RANK, "persia_rank_repair_seconds_total"), RANK_LEGEND)], (12, 7), max=1),
    ]


def progress():
    step = {
        "": most(RANK, select("persia_phase_step")),
        "first": most(RANK, select("persia_phase_first_step")),
        "last": most(RANK, select("persia_progress_planned_steps")),
    }
    amounts = {what: total_rate(RANK, f"persia_progress_{what}_total") for what in ("samples", "tokens")}
    events = over("sum", RANK + ", type, event", rate("persia_events_total"))
    between = quantile(0.5, "persia_event_interval_seconds", RANK + ", type, event")
    named = RANK_LEGEND + " {{type}} {{event}}"
    return [
        chart("Step number", "The present step, the one with which the process began, and the last one.", "none", _lines(step), (12, 8)),
        chart("Samples and tokens of the rank", "Per second.", "short", _lines(amounts), (12, 8)),
        chart("Events", "Events that the rank recorded, per second; the marks on the charts are the same events.", "cps", [query(events, named)], (12, 8)),
        chart("Time between events, median", "Between two such events of a process.", "s", [query(between, named)], (12, 8)),
    ]


def processor_and_memory():
    memory = {f"{kind}": over("sum", RANK, select(f"persia_process_{kind}_memory_bytes")) for kind in ("proportional", "resident", "swapped", "virtual")}
    faults = {kind: _of_process(f"{kind}_page_faults") for kind in ("major", "minor")}
    switches = total_rate(RANK + ", ctxswitchtype", "persia_process_context_switches_total")
    traffic = {kind: _of_process(f"{kind}_bytes") for kind in ("read", "write")}
    threads = {"threads": over("sum", RANK, select("persia_process_threads"))}
    files = {"open": over("sum", RANK, select("persia_process_open_fds")), "limit": most(RANK, select("persia_process_max_fds"))}
    return [
        chart(
            "Processor time",
            "Cores in use. The rank that is busy while the others wait is the slowest.",
            "short",
            [query(_of_process("cpu_seconds"), RANK_LEGEND)],
        ),
        chart(
            "Waits for a processor",
            "Share of time in which the main thread could run and had no processor.",
            "percentunit",
            [query(_of_process("run_queue_wait_seconds"), RANK_LEGEND)],
            thresholds=WAITS,
        ),
        chart(
            "Context switches",
            "Of the main thread, per second: voluntary if it waited, nonvoluntary if others wanted its processor.",
            "cps",
            [query(switches, RANK_LEGEND + " {{ctxswitchtype}}")],
        ),
        chart("Memory", "With its share of what it shares (proportional, PSS), all that it has mapped, in swap space, and virtual.", "bytes", _lines(memory)),
        chart("Page faults", "Per second. A major one reads from a disk or from swap space: the rank waits.", "cps", _lines(faults)),
        chart("Threads", "From /proc.", "short", _lines(threads)),
        chart("Disk traffic", "Bytes per second from and to disks; the page cache does not count.", "binBps", _lines(traffic)),
        chart(
            "Waits for a disk",
            "Share of time in which the main thread waited for a disk. No data: the kernel's delay accounting is off.",
            "percentunit",
            [query(_of_process("io_wait_seconds"), RANK_LEGEND)],
            thresholds=WAITS,
        ),
        chart("Open files", "Open file descriptors, and their limit.", "short", _lines(files)),
    ]


def gpu():
    def of_gpu(name):
        return most(RANK + ", gpu", select("persia_gpu_" + name))

    legend = RANK_LEGEND + " GPU {{gpu}}"
    use = {"kernels": of_gpu("utilization_ratio"), "tensor cores": of_gpu("tensor_active_ratio"), "SMs": of_gpu("sm_active_ratio")}
    share = {"memory": f"{of_gpu('memory_used_bytes')} / {of_gpu('memory_total_bytes')}", "power": f"{of_gpu('power_watts')} / {of_gpu('power_limit_watts')}"}
    return [
        chart(
            "GPU of the rank",
            "Share of the time with kernels, and with tensor cores and SMs active (Hopper and later).",
            "percentunit",
            _lines(use, legend),
            max=1,
        ),
        chart("Memory and power of the GPU", "Share of the device's memory and of its power limit.", "percentunit", _lines(share, legend)),
        chart("Temperature of the GPU", "At its limit the clocks are lowered.", "celsius", [query(of_gpu("temperature_celsius"), legend)]),
    ]


def rows():
    return {
        "Overview": overview(),
        "State": state(),
        "Where the time goes": where_the_time_goes(),
        "Progress and events": progress(),
        "Processor, memory and disk": processor_and_memory(),
        "GPU": gpu(),
    }
