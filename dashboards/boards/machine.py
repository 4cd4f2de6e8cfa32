"""The row of the machine under the ranks, on several boards: memory, processor, disk and network of the job."""

from .grafana import chart, query
from .promql import RANK, RANK_LEGEND, over, rate, select, total_rate

HOST, HOST_LEGEND = "job, ip_addr", "{{job}} {{ip_addr}}"
FULL = [(None, "green"), (0.85, "yellow"), (0.95, "red")]
WAITS = [(None, "green"), (0.1, "yellow"), (0.5, "red")]


def _of_host(name, *matchers):
    return over("max", HOST, select(name, *matchers))


def _share(counter, of):
    return f"{total_rate(HOST, counter)} / {total_rate(HOST, of)}"


def memory():
    resident, proportional, swapped = (over("sum", RANK, select(f"persia_process_{kind}_memory_bytes")) for kind in ("resident", "proportional", "swapped"))
    parts = {"in use": "working_set", "with cache": "usage", "peak": "max_usage", "in swap": "swap", "limit": "limit"}
    of_job = [query(_of_host(f"persia_cgroup_memory_{kind}_bytes"), f"{HOST_LEGEND} {words}") for words, kind in parts.items()]
    faults = [query(total_rate(RANK, f"persia_process_{kind}_page_faults_total"), f"{RANK_LEGEND} {kind}") for kind in ("major", "minor")]
    of_rank = [query(proportional, RANK_LEGEND), query(resident, RANK_LEGEND + " resident"), query(swapped, RANK_LEGEND + " in swap")]
    killed = over("sum", HOST + ", event", rate("persia_cgroup_memory_events_total"))
    return [
        chart("Memory of the job", "Memory of the job's cgroup, and its limit if there is one. At the limit the kernel kills a process.", "bytes", of_job),
        chart(
            "Memory by rank",
            "Memory of each rank with its share of what it shares (PSS), all that it has mapped, and what is in swap space.",
            "bytes", of_rank,
        ),
        chart(
            "Memory events",
            "Events of the cgroup's memory per second: max at the limit, oom_kill if the kernel killed a process.",
            "cps", [query(killed, HOST_LEGEND + " {{event}}")], (4, 8),
        ),
        chart("Page faults by rank", "Per second. A major one reads from a disk or from swap space: the rank waits.", "cps", faults, (4, 8)),
    ]


def processor():
    waits = total_rate(RANK, "persia_process_run_queue_wait_seconds_total")
    switches = total_rate(RANK + ", ctxswitchtype", "persia_process_context_switches_total")
    used, cores = total_rate(HOST, "persia_cgroup_cpu_usage_seconds_total"), _of_host("persia_cgroup_cpu_limit_cores")
    stopped = total_rate(HOST, "persia_cgroup_cpu_cfs_throttled_seconds_total")
    cores_of_job = [query(used, HOST_LEGEND), query(cores, HOST_LEGEND + " limit"), query(stopped, HOST_LEGEND + " stopped")]
    throttled = _share("persia_cgroup_cpu_cfs_throttled_periods_total", "persia_cgroup_cpu_cfs_periods_total")
    return [
        chart(
            "Waits for a processor by rank",
            "Share of time in which the rank's main thread could run and had no processor.",
            "percentunit", [query(waits, RANK_LEGEND)], (6, 8), WAITS,
        ),
        chart(
            "Context switches by rank",
            "Of the main thread, per second: voluntary if it waited, nonvoluntary if others wanted its processor.",
            "cps", [query(switches, RANK_LEGEND + " {{ctxswitchtype}}")], (6, 8),
        ),
        chart(
            "Processors of the job",
            "Cores that the job's cgroup uses, its limit if there is one, and cores that the limit stopped.",
            "short", cores_of_job, (6, 8),
        ),
        chart(
            "Throttled",
            "Share of the periods of the processor limit in which the job's cgroup was stopped.",
            "percentunit", [query(throttled, HOST_LEGEND)], (6, 8), WAITS,
        ),
    ]


def disks():
    def pressure(kind):
        rates = {of: over("max", HOST + ", scope", rate(f"persia_pressure_{of}_{kind}_seconds_total")) for of in ("cpu", "io", "memory")}
        return [query(expression, f"{HOST_LEGEND} {{{{scope}}}} {of}") for of, expression in rates.items()]

    def of_use(name):
        return over("max", HOST + ", use", select("persia_filesystem_" + name))

    def io(kind):
        return total_rate(HOST, f"persia_cgroup_io_{kind}_total")

    waits = [query(total_rate(RANK, "persia_process_io_wait_seconds_total"), RANK_LEGEND)]
    traffic = [query(io(f"{kind}_bytes"), f"{HOST_LEGEND} {kind}") for kind in ("read", "written")]
    calls = [query(io(kind), f"{HOST_LEGEND} {kind}") for kind in ("reads", "writes")]
    full = f"1 - {of_use('avail_bytes')} / {of_use('size_bytes')}"
    files = f"1 - {of_use('files_free')} / {of_use('files')}"
    hangs = of_use("device_error")
    bytes_of = [query(total_rate(RANK, f"persia_process_{kind}_bytes_total"), f"{RANK_LEGEND} {kind}") for kind in ("read", "write")]
    descriptors = over("max", RANK, f"{select('persia_process_open_fds')} / {select('persia_process_max_fds')}")
    return [
        chart(
            "Pressure",
            "Share of time in which a process waited for processors, disks or memory, of the host and of the job's cgroup.",
            "percentunit", pressure("waiting"), (6, 8), WAITS,
        ),
        chart(
            "Pressure, all stalled",
            "Share of time in which no process could run, because all waited for processors, disks or memory.",
            "percentunit", pressure("stalled"), (6, 8), WAITS,
        ),
        chart(
            "Waits for a disk by rank",
            "Share of time in which the rank's main thread waited for a disk. No data: the kernel's delay accounting is off.",
            "percentunit", waits, (6, 8), WAITS,
        ),
        chart(
            "Disks",
            "How full the filesystems of /dev/shm, the working directory and the agent's state are.",
            "percentunit", [query(full, HOST_LEGEND + " {{use}}")], (6, 8), FULL,
        ),
        chart(
            "Files of the disks",
            "Share of the filesystems' files (inodes) that are in use.",
            "percentunit", [query(files, HOST_LEGEND + " {{use}}")], (4, 8), FULL,
        ),
        chart("Filesystem errors", "1: the filesystem answers with an error, or not at all.", "short", [query(hangs, HOST_LEGEND + " {{use}}")], (4, 8), max=1),
        chart("Disk traffic by rank", "Bytes per second from and to disks; the page cache does not count.", "Bps", bytes_of, (4, 8)),
        chart("Disk traffic of the job", "Bytes per second of the job's cgroup from and to disks.", "Bps", traffic, (4, 8)),
        chart("Disk accesses of the job", "Reads and writes of disks per second of the job's cgroup.", "cps", calls, (4, 8)),
        chart("Descriptors by rank", "Open file descriptors as a share of the limit.", "percentunit", [query(descriptors, RANK_LEGEND)], (4, 8), FULL),
    ]


def network():
    def by_device(name):
        return total_rate(HOST + ", device", name)

    kinds = {"received": "receive", "sent": "transmit"}
    traffic = [query(by_device(f"persia_network_{kind}_bytes_total"), f"{HOST_LEGEND} {{{{device}}}} {word}") for word, kind in kinds.items()]
    counts = [(word, kind, what) for word, kind in kinds.items() for what in ("errs", "drop")]
    wrong = [query(by_device(f"persia_network_{kind}_{what}_total"), f"{HOST_LEGEND} {{{{device}}}} {word} {what}") for word, kind, what in counts]
    again = _share("persia_network_tcp_retransmit_segments_total", "persia_network_tcp_transmit_segments_total")
    return [
        chart("Network", "Bytes per second of the interfaces of the job's network namespace.", "Bps", traffic, (8, 8)),
        chart("Network errors", "Packets with errors, and packets that were dropped, per second.", "cps", wrong, (8, 8)),
        chart("TCP retransmissions", "Share of TCP's segments that were sent again.", "percentunit", [query(again, HOST_LEGEND)], (8, 8)),
    ]


def infiniband():
    """Empty on hosts without an adapter."""

    def by_port(name):
        return total_rate(HOST + ", device, port", "persia_infiniband_" + name)

    port = HOST_LEGEND + " {{device}} {{port}}"
    traffic = [query(by_port(f"port_data_{kind}_bytes_total"), f"{port} {kind}") for kind in ("received", "transmitted")]
    counts = ("symbol_error", "port_receive_errors", "port_discards_transmitted", "link_error_recovery", "link_downed")
    wrong = [query(by_port(f"{what}_total"), f"{port} {what.replace('_', ' ')}") for what in counts]
    state, speed = (over("max", HOST + ", device, port", select("persia_infiniband_" + name)) for name in ("state_id", "rate_bytes_per_second"))
    return [
        chart(
            "InfiniBand",
            "Bytes per second of the host's ports, and the speed of their links. No data: the host has no adapter.",
            "Bps", [*traffic, query(speed, port + " speed")], (8, 8),
        ),
        chart(
            "InfiniBand errors",
            "Errors of the link per second, and how often it recovered or went down. No data: the host has no adapter.",
            "cps", wrong, (8, 8),
        ),
        chart("InfiniBand state", "4: the port is active; 1: it is down. No data: the host has no adapter.", "short", [query(state, port)], (8, 8)),
    ]


def rows():
    return {
        "Machine: memory and processor": memory() + processor(),
        "Machine: disk and network": disks() + network() + infiniband(),
    }
