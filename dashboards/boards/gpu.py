"""The board of a job's GPUs. Of many devices, a band and those that are worst."""

from .grafana import chart, query, stat
from .jobs import gpu_use
from .panels import band_chart, most, worst_chart
from .promql import RATE, increase, or_zero, over, rate, select, unless_ended

UID = "persia-gpu"
TITLE = "GPUs"
DESCRIPTION = (
    "The GPUs of a job: use, memory, power, heat, clocks, links and errors, by device. "
    "Source: persia_gpu_* of persia-metrics-agent, which reads NVIDIA's driver on each host."
)
ABOUT = """What NVIDIA's driver tells `persia-metrics-agent`, by device. A device has the labels of the rank that it belongs to; if no rank is known, its \
instance is `no_rank`. A GPU that waits is not the slowest one: the slowest rank is busy while the others wait. The GPU of one rank: {rank}. Who waits for \
whom: {job}."""
LINKS = {"rank": "persia-rank", "job": "persia-job"}
VARIABLES = []

DEVICE, LEGEND = "job, instance, ip_addr, gpu", "{{instance}} {{ip_addr}} GPU {{gpu}}"
HOT = [(None, "green"), (80, "yellow"), (90, "red")]


def _gauge(name, *matchers):
    return most(DEVICE, select("persia_gpu_" + name, *matchers))


MEMORY = f"{_gauge('memory_used_bytes')} / {_gauge('memory_total_bytes')}"
POWER = f"{_gauge('power_watts')} / {_gauge('power_limit_watts')}"
LOST = f"{select('persia_gpu_up')} == bool 0"


def overview():
    def now(title, about, unit, expr, legend, thresholds=((None, "green"),), **more):
        return stat(title, about, unit, query(unless_ended(expr), legend), thresholds, **more)

    red = [(None, "green"), (1, "red")]
    throttled = over("count", "job", most(DEVICE, select("persia_gpu_throttled", 'reason=~"hw_.+|sw_thermal"') + " == 1"))
    draw = over("sum", "job", most("job, ip_addr, gpu", select("persia_gpu_power_watts"))) + " / 1000"
    return [
        now("Devices", "That answer.", "short", over("sum", "job", select("persia_gpu_up")), "devices"),
        now("Lost devices", "They have fallen off the bus.", "short", over("sum", "job", LOST), "lost", red),
        now("Least used", "The device with the lowest share of time with a kernel.", "percentunit", over("min", "job", gpu_use()), "lowest"),
        now("Hottest", "Temperature.", "celsius", over("max", "job", _gauge("temperature_celsius")), "highest", HOT),
        now("Throttled devices", "By heat or hardware.", "short", throttled, "devices", red),
        now("Power", "Of all devices, in kilowatts.", "short", draw, "kW", decimals=1),
    ]


def use():
    return [
        worst_chart(
            "Least used devices",
            "Share of the time in which a kernel ran.",
            "percentunit",
            _gauge("utilization_ratio"),
            LEGEND,
            lowest=True,
            summary="avg",
            max=1,
        ),
        band_chart(
            "Tensor cores", "Share of the time in which tensor cores were active: Hopper and later.", "percentunit", _gauge("tensor_active_ratio"), max=1
        ),
        band_chart("SMs", "Share of the SMs that were busy: Hopper and later.", "percentunit", _gauge("sm_active_ratio"), max=1),
        worst_chart("Fullest memories", "Share of the device's memory that processes have allocated.", "percentunit", MEMORY, LEGEND, max=1),
        band_chart("GPU memory", "Share of the device's memory that processes have allocated.", "percentunit", MEMORY, max=1),
        band_chart("Share of the power limit", "At 100 % the clocks are lowered to stay below it.", "percentunit", POWER),
    ]


def heat_and_clocks():
    reasons = over("sum", "job, reason", select("persia_gpu_throttled"))
    received = over("sum", DEVICE, rate("persia_gpu_nvlink_received_bytes_total"))
    return [
        worst_chart("Hottest devices", "Temperature of the GPU.", "celsius", _gauge("temperature_celsius"), LEGEND, thresholds=HOT),
        worst_chart(
            "Lowest clocks",
            "Clock of the SMs: a device with a lower clock than the others slows the whole job down.",
            "hertz",
            _gauge("clock_sm_hertz"),
            LEGEND,
            lowest=True,
            summary="avg",
        ),
        chart("Throttled, by reason", "Devices whose clocks are lowered for this reason.", "short", [query(reasons + " > 0", "{{reason}}")]),
        band_chart("NVLink", "Bytes per second to a device.", "binBps", received, size=(12, 8)),
        band_chart("PCIe", "Bytes per second to a device.", "binBps", _gauge("pcie_received_bytes_per_second"), size=(12, 8)),
    ]


def errors():
    xids = over("sum", DEVICE + ", xid, class", increase("persia_gpu_xid_errors_total", range=RATE))
    ecc = over("sum", DEVICE + ", kind", rate("persia_gpu_ecc_errors_total"))
    lost = or_zero(over("sum", "job", LOST), where="persia_gpu_up")
    return [
        worst_chart(
            "Errors of the driver",
            "XID by class, and devices that are lost.",
            "short",
            xids + " > 0",
            LEGEND + " XID {{xid}} {{class}}",
            [query(lost, "lost")],
            (12, 8),
        ),
        worst_chart("ECC errors", "Memory errors per second, corrected or not.", "cps", ecc, LEGEND + " {{kind}}", size=(12, 8)),
    ]


def rows():
    return {"Overview": overview(), "Use": use(), "Heat, clocks and links": heat_and_clocks(), "Errors": errors()}
