"""The rows of GPUs, by rank, which several boards have. Devices of which no rank is known are on the instance "no_rank"."""

from .grafana import chart, query
from .promql import RATE, or_zero, over, increase, rate, select

DEVICE, LEGEND = "job, instance, ip_addr, gpu", "{{job}} {{instance}} {{ip_addr}} GPU {{gpu}}"
HOT = [(None, "green"), (80, "yellow"), (90, "red")]


def _gauge(name, *matchers, by=DEVICE):
    return over("max", by, select("persia_gpu_" + name, *matchers))


def _line(title, description, unit, name, size=(8, 8), **more):
    return chart(title, description, unit, [query(_gauge(name), LEGEND)], size, **more)


def panels():
    """Use, memory, heat and errors."""
    memory = f"{_gauge('memory_used_bytes')} / {_gauge('memory_total_bytes')}"
    power = f"{_gauge('power_watts')} / {_gauge('power_limit_watts')}"
    reasons = over("max", DEVICE + ", reason", select("persia_gpu_throttled"))
    xids = over("sum", DEVICE + ", xid, class", increase("persia_gpu_xid_errors_total", range=RATE))
    ecc = over("sum", DEVICE + ", kind", rate("persia_gpu_ecc_errors_total"))
    links = [
        query(over("sum", DEVICE, rate("persia_gpu_nvlink_received_bytes_total")), LEGEND + " NVLink"),
        query(over("sum", DEVICE, select("persia_gpu_pcie_received_bytes_per_second")), LEGEND + " PCIe"),
    ]
    lost = or_zero(over("sum", "job", f"{select('persia_gpu_up')} == bool 0"), where="persia_gpu_up")
    errors = [query(xids + " > 0", LEGEND + " XID {{xid}} {{class}}"), query(lost, "{{job}} lost")]
    return [
        _line("GPU utilisation", "Share of the time in which a kernel ran. The rank whose GPU waits is not the slowest one.", "percentunit", "utilization_ratio", max=1),
        _line("Tensor cores", "Share of the time in which tensor cores were active: Hopper and later.", "percentunit", "tensor_active_ratio", max=1),
        _line("SMs", "Share of the SMs that were busy: Hopper and later.", "percentunit", "sm_active_ratio", max=1),
        chart("GPU memory", "Share of the device's memory that processes have allocated.", "percentunit", [query(memory, LEGEND)], max=1),
        chart("Power", "Share of the power limit. At 100 % the clocks are lowered to stay below it.", "percentunit", [query(power, LEGEND)]),
        _line("Temperature", "Temperature of the GPU.", "celsius", "temperature_celsius", thresholds=HOT),
        _line("SM clock", "A device with a lower clock than the others slows the whole job down.", "hertz", "clock_sm_hertz"),
        chart("Throttled", "1: the clocks are lowered for this reason.", "short", [query(reasons + " > 0", LEGEND + " {{reason}}")], max=1),
        chart("Traffic to the device", "NVLink and PCIe, bytes per second.", "Bps", links),
        chart("GPU errors", "Errors that the driver reported (XID), and devices that are lost.", "short", errors, (12, 8)),
        chart("ECC errors", "Memory errors per second, corrected or not.", "cps", [query(ecc, LEGEND + " {{kind}}")], (12, 8)),
    ]
