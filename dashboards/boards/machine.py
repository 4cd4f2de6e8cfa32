"""The board of the machines under the ranks of a job: memory, processor, disk and network. Of many hosts, those that lack the most."""

from .grafana import chart, query, stat
from .panels import band_chart, most, worst_chart
from .promql import over, rate, select, total_rate, unless_ended

UID = "persia-machine"
TITLE = "Machine"
DESCRIPTION = (
    "Memory, processor, disk and network of a job's hosts, and which of them the job lacks. "
    "Source: persia_cgroup_*, persia_pressure_*, persia_filesystem_*, persia_network_* and persia_infiniband_* of persia-metrics-agent."
)
ABOUT = """What `persia-metrics-agent` reads from the kernel, once for each host: of the job's cgroup, its network namespace and its filesystems; pressure \
also of the whole host. Values that the host does not have are absent: a limit, an InfiniBand adapter, delay accounting. The processes of one rank: {rank}. \
Devices: {gpu}."""
LINKS = {"rank": "persia-rank", "gpu": "persia-gpu"}
VARIABLES = []

HOST, LEGEND = "job, ip_addr", "{{ip_addr}}"
FULL = [(None, "green"), (0.85, "yellow"), (0.95, "red")]
WAITS = [(None, "green"), (0.1, "yellow"), (0.5, "red")]
ANY = [(None, "green"), (0.001, "yellow"), (0.01, "red")]
ADAPTER = " No data: the host has no adapter."


def _of_host(name, *matchers):
    return most(HOST, select(name, *matchers))


def _share(counter, of):
    return f"{total_rate(HOST, counter)} / {total_rate(HOST, of)}"


def _of_use(name):
    return most(HOST + ", use", select("persia_filesystem_" + name))


def _memory(kind):
    return _of_host(f"persia_cgroup_memory_{kind}_bytes")


FILLED = f"{_memory('working_set')} / {_memory('limit')}"
THROTTLED = _share("persia_cgroup_cpu_cfs_throttled_periods_total", "persia_cgroup_cpu_cfs_periods_total")
DISK = f"1 - {_of_use('avail_bytes')} / {_of_use('size_bytes')}"
AGAIN = _share("persia_network_tcp_retransmit_segments_total", "persia_network_tcp_transmit_segments_total")


def overview():
    def highest(title, about, expr, thresholds):
        return stat(title, about, "percentunit", query(unless_ended(over("max", "job", expr)), "highest"), thresholds)

    hosts = unless_ended(over("count", "job", _of_host("persia_filesystem_size_bytes")))
    down = over("count", "job", f"{most(HOST + ', device, port', select('persia_infiniband_state_id'))} < 4")
    return [
        stat("Hosts", "Hosts of the job with an agent.", "short", query(hosts, "hosts")),
        highest("Fullest memory", "Share of the memory limit that is in use, without page cache.", FILLED, FULL),
        highest("Most throttled", "Share of the periods of the processor limit in which the job was stopped.", THROTTLED, WAITS),
        highest("Fullest disk", "Of /dev/shm, the working directory and the agent's state.", DISK, FULL),
        highest("Most sent again", "Share of TCP's segments that were sent again.", AGAIN, ANY),
        stat("InfiniBand ports down", "Ports that are not active." + ADAPTER, "short", query(unless_ended(down), "ports"), [(None, "green"), (1, "red")]),
    ]


def memory():
    kinds = {"with cache": "usage", "peak": "max_usage", "in swap": "swap", "limit": "limit"}
    parts = [query(over("max", "job", _memory(kind)), words) for words, kind in kinds.items()]
    events = rate("persia_cgroup_memory_events_total")
    return [
        worst_chart(
            "Memory in use", "Of the job's cgroup, without page cache. At its limit the kernel kills a process.", "bytes", _memory("working_set"), LEGEND
        ),
        worst_chart("Memory against its limit", "Share of the limit that is in use, without page cache.", "percentunit", FILLED, LEGEND, thresholds=FULL),
        chart("Memory of the fullest host", "The job's cgroup with page cache, its peak, swap and limit: of each the highest host.", "bytes", parts),
        worst_chart(
            "Memory events",
            "Per second: max at the limit, oom_kill if the kernel killed a process.",
            "cps",
            over("sum", HOST + ", event", events),
            LEGEND + " {{event}}",
            size=(24, 6),
        ),
    ]


def processor():
    used, stopped = total_rate(HOST, "persia_cgroup_cpu_usage_seconds_total"), total_rate(HOST, "persia_cgroup_cpu_cfs_throttled_seconds_total")
    limit = [query(over("max", "job", _of_host("persia_cgroup_cpu_limit_cores")), "limit")]
    return [
        band_chart("Processors", "Cores that the job's cgroup uses on a host, and its limit.", "short", used, limit, (12, 8)),
        worst_chart(
            "Throttled by the limit",
            "Share of the periods in which the processor limit stopped the job.",
            "percentunit",
            THROTTLED,
            LEGEND,
            thresholds=WAITS,
            size=(6, 8),
        ),
        worst_chart("Cores stopped by the limit", "Cores that the limit did not let run.", "short", stopped, LEGEND, size=(6, 8)),
    ]


def pressure():
    def of(kind):
        return {what: over("max", HOST + ", scope", rate(f"persia_pressure_{what}_{kind}_seconds_total")) for what in ("cpu", "io", "memory")}

    named = LEGEND + " {{scope}}"
    waiting = "Share of time in which a process waited for processors, disks or memory, of the host and of the job's cgroup."
    stalled = "Share of time in which no process could run, because all waited for it."
    return [
        *(worst_chart(f"Pressure: {what}", waiting, "percentunit", expr, named, thresholds=WAITS) for what, expr in of("waiting").items()),
        *(worst_chart(f"All stalled: {what}", stalled, "percentunit", expr, named, thresholds=WAITS) for what, expr in of("stalled").items()),
    ]


def disks():
    def io(kind):
        return total_rate(HOST, f"persia_cgroup_io_{kind}_total")

    files = f"1 - {_of_use('files_free')} / {_of_use('files')}"
    named = LEGEND + " {{use}}"
    full = "How full the filesystems of /dev/shm, the working directory and the agent's state are."
    hangs = "1: the filesystem answers with an error, or not at all."
    traffic = {"read": io("read_bytes"), "written": io("written_bytes")}
    calls = {"reads": io("reads"), "writes": io("writes")}
    return [
        worst_chart("Disks", full, "percentunit", DISK, named, thresholds=FULL),
        worst_chart("Files of the disks", "Share of the filesystems' files (inodes) in use.", "percentunit", files, named, thresholds=FULL),
        worst_chart("Filesystem errors", hangs, "short", _of_use("device_error"), named, max=1),
        worst_chart("Disk traffic of the job", "Bytes per second of the job's cgroup from and to disks.", "binBps", traffic, LEGEND, summary="avg", size=(12, 8)),
        worst_chart("Disk accesses of the job", "Reads and writes of disks per second of the job's cgroup.", "cps", calls, LEGEND, summary="avg", size=(12, 8)),
    ]


def network():
    def by_device(name):
        return total_rate(HOST + ", device", name)

    kinds = {"received": "receive", "sent": "transmit"}
    traffic = {word: by_device(f"persia_network_{kind}_bytes_total") for word, kind in kinds.items()}
    wrong = {f"{word} {what}": by_device(f"persia_network_{kind}_{what}_total") for word, kind in kinds.items() for what in ("errs", "drop")}
    named = LEGEND + " {{device}}"
    return [
        worst_chart("Network", "Bytes per second of the interfaces of the job's network namespace.", "binBps", traffic, named, summary="avg"),
        worst_chart("Network errors", "Packets with errors, and packets that were dropped, per second.", "cps", wrong, named),
        worst_chart("TCP retransmissions", "Share of TCP's segments that were sent again.", "percentunit", AGAIN, LEGEND),
    ]


def infiniband():
    def by_port(name):
        return total_rate(HOST + ", device, port", "persia_infiniband_" + name)

    named = LEGEND + " {{device}} {{port}}"
    traffic = {kind: by_port(f"port_data_{kind}_bytes_total") for kind in ("received", "transmitted")}
    counts = ("symbol_error", "port_receive_errors", "port_discards_transmitted", "link_error_recovery", "link_downed")
    wrong = {what.replace("_", " "): by_port(f"{what}_total") for what in counts}
    state, speed = (most(HOST + ", device, port", select("persia_infiniband_" + name)) for name in ("state_id", "rate_bytes_per_second"))
    return [
        worst_chart("InfiniBand", "Bytes per second of the ports." + ADAPTER, "binBps", traffic, named, summary="avg"),
        worst_chart("InfiniBand errors", "Errors of the link per second, and how often it recovered or went down." + ADAPTER, "cps", wrong, named),
        worst_chart("InfiniBand state", "4: the port is active; 1: it is down." + ADAPTER, "short", state, named, lowest=True),
        worst_chart(
            "InfiniBand speed",
            "Of the ports' links: one that is slower than the others slows all ranks." + ADAPTER,
            "binBps",
            speed,
            named,
            lowest=True,
            size=(24, 6),
        ),
    ]


def rows():
    return {
        "Overview": overview(),
        "Memory": memory(),
        "Processor": processor(),
        "Pressure": pressure(),
        "Disk": disks(),
        "Network": network() + infiniband(),
    }
