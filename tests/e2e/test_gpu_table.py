"""docs/gpu.md describes what the agent exposes of GPUs: each family, and each field of NVIDIA's exporter."""

import re
import subprocess

from servers import ROOT, find_program

DOCUMENT = (ROOT / "docs/gpu.md").read_text()
ROWS = {
    name: (kind, set(re.findall(r"\w+", labels)), set(re.findall(r"DCGM_\w+", fields)))
    for name, kind, labels, fields in re.findall(r"^\| `(persia_gpu_\w+)` \| (\w+) \| ([^|]*) \| ([^|]*) \|", DOCUMENT, re.M)
}
# dcgm-exporter's etc/default-counters.csv and etc/dcp-metrics-included.csv, with their fields that are off by default.
OF_DCGM = """
SM_CLOCK MEM_CLOCK MEMORY_TEMP GPU_TEMP POWER_USAGE TOTAL_ENERGY_CONSUMPTION PCIE_TX_THROUGHPUT PCIE_RX_THROUGHPUT PCIE_REPLAY_COUNTER GPU_UTIL MEM_COPY_UTIL
ENC_UTIL DEC_UTIL XID_ERRORS FB_FREE FB_USED FB_RESERVED ECC_SBE_VOL_TOTAL ECC_DBE_VOL_TOTAL ECC_SBE_AGG_TOTAL ECC_DBE_AGG_TOTAL RETIRED_SBE RETIRED_DBE
RETIRED_PENDING NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL NVLINK_CRC_DATA_ERROR_COUNT_TOTAL NVLINK_REPLAY_ERROR_COUNT_TOTAL NVLINK_RECOVERY_ERROR_COUNT_TOTAL
NVLINK_BANDWIDTH_TOTAL UNCORRECTABLE_REMAPPED_ROWS CORRECTABLE_REMAPPED_ROWS ROW_REMAP_FAILURE
""".split()
OF_PROFILING = "GR_ENGINE_ACTIVE SM_ACTIVE SM_OCCUPANCY PIPE_TENSOR_ACTIVE DRAM_ACTIVE PIPE_FP64_ACTIVE PIPE_FP32_ACTIVE PIPE_FP16_ACTIVE PCIE_TX_BYTES PCIE_RX_BYTES".split()


def shown(samples):
    """Type and labels of each family of devices."""
    families = {name: [kind, set()] for name, kind in re.findall(r"^# TYPE (persia_gpu_\w+) (\w+)$", samples.text, re.M)}
    for name, labels in samples:
        if name in families:
            families[name][1] |= set(dict(labels)) - {"job", "instance", "ip_addr", "role"}
    return families


def test_the_table_has_each_family_with_its_type_and_labels_and_promtool_accepts_them(host):
    host.start("devices 2", "mig 1 1")
    host.wait_for(lambda: host.metrics().one("persia_gpu_tensor_active_ratio", gpu="0") is not None, "values of GPM")
    host.add("xid 0 79")

    def page_with_both():
        page = host.metrics()
        has_both = page.one("persia_gpu_xid_errors_total") == 1 and page.one("persia_gpu_tensor_active_ratio", gpu="0") is not None
        return has_both and page

    metrics = host.wait_for(page_with_both, "an error, and values that are not old")
    assert shown(metrics) == {name: [kind, labels] for name, (kind, labels, _) in ROWS.items()}
    text = "".join(line + "\n" for line in metrics.text.splitlines() if re.match(r"(# \w+ )?persia_gpu_", line))
    done = subprocess.run([find_program("promtool"), "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    assert text.count("# HELP") == len(ROWS)


def test_each_field_of_dcgm_exporter_has_its_row():
    fields = {field for _, _, fields in ROWS.values() for field in fields}
    wanted = {f"DCGM_FI_DEV_{name}" for name in OF_DCGM} | {f"DCGM_FI_PROF_{name}" for name in OF_PROFILING}
    assert wanted - fields == set()


def test_the_tables_are_those_of_the_sources():
    source = (ROOT / "agent/gpu/gpu_fields.cc").read_text()
    families = set(re.findall(r'\{"(persia_gpu_\w+)"', source))
    assert families | {"persia_gpu_info", "persia_gpu_up", "persia_gpu_xid_errors_total"} == set(ROWS)
    xids = re.findall(r'\{(\d+), k(\w+), "([^"]*)"\}', (ROOT / "agent/gpu/gpu_xids.cc").read_text())
    assert re.findall(r"^\| (\d+) \| (\w+) \| (.*) \|$", DOCUMENT, re.M) == [(xid, kind.lower(), text) for xid, kind, text in xids]
