"""GPUs by rank, with a stand-in for NVIDIA's library in each kind of trouble: no tick is late, no rank is wrong, and the log has one line."""

import json
import os
import signal
from pathlib import Path

import pytest
from conftest import fetch
from gpu_host import IN_INITIAL_NAMESPACE
from servers import wait_until
from supervised import state, threads_of_process

READING = ["reading 1 GPU, driver 550.54.15"]


def family_names(samples):
    return {name for name, _ in samples if name.startswith("persia_gpu_")}


# --- without values: what the log says

SILENT = {
    "no driver": (["do nvmlInit error 9"], "the NVIDIA driver is not loaded"),
    "an error of the future": (["do nvmlInit error 4711"], "NVML error 4711"),
    "a crash in nvmlInit": (["do nvmlInit crash"], "the driver's library crashed by SIGSEGV"),
    "a library that ends its process": (["do nvmlInit exit 7"], "the driver's library ended with exit code 7"),
    "garbage in the pipe": (["do nvmlDeviceGetTemperature garbage"], "wrote bytes that are no message"),
    "a library that takes all memory": (["do nvmlDeviceGetTemperature leak"], "the driver's library crashed by SIGABRT"),
}


@pytest.mark.parametrize("lines, said", SILENT.values(), ids=SILENT)
def test_a_library_that_does_not_work(host, lines, said):
    host.start(*lines)
    host.wait_for(lambda: (host.metrics().one("persia_agent_gpu_reader_restarts_total") or 0) >= 2, "two more tries")
    assert host.metrics().one("persia_agent_gpu_reader_up") == 0
    assert family_names(host.metrics()) == set()
    host.check([f"GPUs are not read: {said}" if "garbage" not in said and "bytes" not in said else said])


def test_a_file_that_is_no_library(host):
    host.start(library="hello, world")
    host.wait_for(lambda: (host.metrics().one("persia_agent_gpu_reader_restarts_total") or 0) >= 1, "another try")
    host.check(["cannot load"])


@pytest.mark.parametrize("function", ["nvmlInit", "nvmlDeviceGetPowerUsage"])
def test_a_call_that_hangs_delays_nothing(host, function):
    host.start(f"do {function} hang 300")
    worker = host.rank(0)
    wait_until(host.reader, "the reader")
    for steps in (2, 3, 4):
        worker.tell("count my_app steps 1")
        host.wait_for(lambda steps=steps: host.metrics().one("my_app_steps", instance="rep_0") == steps, "a value beside the call")
    assert family_names(host.metrics()) == set()
    host.check([])
    host.ends()


def test_values_that_nothing_renews_are_not_shown(host):
    host.start("devices 2")
    host.wait_for_ranks(gpu_0="no_rank", gpu_1="no_rank")
    host.add("do nvmlDeviceGetPowerUsage hang 300")
    host.wait_for(lambda: family_names(host.metrics()) == {"persia_gpu_info"}, "no old value")
    host.check(["reading 2 GPUs"])
    host.ends()


# --- with values


def test_every_value_in_base_units(host):
    host.start("pids 0 1", "set field_143 0 2", "set throttle 0 68", "set field_145 0 1")
    metrics = host.wait_for(lambda: (page := host.metrics()).one("persia_gpu_tensor_active_ratio") is not None and page, "values of GPM, from the second sample on")
    assert {name: metrics.one(name) for name in family_names(metrics) if metrics.one(name, kind="", cause="", reason="") is None and name not in LABELLED} == {
        "persia_gpu_clock_max_sm_hertz": 1.98e9,
        "persia_gpu_clock_memory_hertz": 2.619e9,
        "persia_gpu_clock_sm_hertz": 1.755e9,
        "persia_gpu_decoder_utilization_ratio": 0.05,
        "persia_gpu_dram_active_ratio": 0.25,
        "persia_gpu_encoder_utilization_ratio": 0,
        "persia_gpu_energy_joules_total": 5e6,
        "persia_gpu_fp16_active_ratio": 0.25,
        "persia_gpu_fp32_active_ratio": 0.25,
        "persia_gpu_fp64_active_ratio": 0.25,
        "persia_gpu_graphics_active_ratio": 0.25,
        "persia_gpu_info": 1,
        "persia_gpu_memory_free_bytes": 59 << 30,
        "persia_gpu_memory_reserved_bytes": 1 << 30,
        "persia_gpu_memory_temperature_celsius": 70,
        "persia_gpu_memory_total_bytes": 80 << 30,
        "persia_gpu_memory_used_bytes": 20 << 30,
        "persia_gpu_memory_utilization_ratio": 0.4,
        "persia_gpu_nvlink_received_bytes_total": 0,
        "persia_gpu_nvlink_transmitted_bytes_total": 1000 << 10,
        "persia_gpu_pcie_received_bytes_per_second": 2e6,
        "persia_gpu_pcie_replays_total": 3,
        "persia_gpu_pcie_transmitted_bytes_per_second": 1e6,
        "persia_gpu_power_limit_watts": 700,
        "persia_gpu_power_watts": 350,
        "persia_gpu_retired_pages_pending": 0,
        "persia_gpu_row_remap_failed": 1,
        "persia_gpu_row_remap_pending": 0,
        "persia_gpu_sm_active_ratio": 0.25,
        "persia_gpu_sm_occupancy_ratio": 0.25,
        "persia_gpu_temperature_celsius": 61,
        "persia_gpu_tensor_active_ratio": 0.25,
        "persia_gpu_up": 1,
        "persia_gpu_utilization_ratio": 0.9,
    }
    assert metrics.one("persia_gpu_remapped_rows", kind="uncorrectable") == 2
    assert metrics.one("persia_gpu_ecc_errors_total", kind="corrected") == 4
    assert metrics.one("persia_gpu_throttled", reason="sw_power_cap") == 1
    assert metrics.one("persia_gpu_throttled", reason="hw_thermal") == 1
    assert metrics.one("persia_gpu_throttled", reason="hw_slowdown") == 0
    info = metrics.one("persia_gpu_info", uuid="GPU-00000000-0000-0000-0000-000000000000", model="NVIDIA H100 80GB HBM3", driver_version="550.54.15")
    assert info == 1 and metrics.one("persia_gpu_info", pci_bus_id="00000000:1B:00.0") == 1
    uuids = {name for name, labels in metrics if "uuid" in dict(labels)}
    assert uuids == {"persia_gpu_info"}
    host.check(READING)


LABELLED = {"persia_gpu_ecc_errors_total", "persia_gpu_ecc_lifetime_errors_total", "persia_gpu_nvlink_errors_total", "persia_gpu_remapped_rows", "persia_gpu_retired_pages", "persia_gpu_throttled"}

NONE_SUPPORTED = [
    f"do {name} error 3"
    for name in (
        "nvmlSystemGetDriverVersion nvmlDeviceGetName nvmlDeviceGetUUID nvmlDeviceGetUtilizationRates nvmlDeviceGetPowerUsage nvmlDeviceGetEnforcedPowerLimit "
        "nvmlDeviceGetTotalEnergyConsumption nvmlDeviceGetTemperature nvmlDeviceGetClockInfo nvmlDeviceGetMaxClockInfo nvmlDeviceGetCurrentClocksThrottleReasons "
        "nvmlDeviceGetPcieThroughput nvmlDeviceGetPcieReplayCounter nvmlDeviceGetTotalEccErrors nvmlDeviceGetMemoryInfo nvmlDeviceGetComputeRunningProcesses "
        "nvmlDeviceGetEncoderUtilization nvmlDeviceGetDecoderUtilization nvmlDeviceGetPciInfo nvmlDeviceGetFieldValues nvmlDeviceGetMigMode "
        "nvmlGpmQueryDeviceSupport nvmlEventSetCreate nvmlDeviceRegisterEvents nvmlEventSetWait"
    ).split()
]
ONLY_UP = {"persia_gpu_info", "persia_gpu_up"}


def without(*names):
    """A condition: the device is there, and its metrics lack these."""

    def is_so(metrics):
        return "persia_gpu_power_watts" in family_names(metrics) and not family_names(metrics) & set(names)

    return is_so


IMPOSSIBLE = {f"persia_gpu_{name}" for name in ("utilization_ratio", "temperature_celsius", "power_watts", "energy_joules_total")}

STRANGE = {
    "the fewest functions": ([], "least", lambda metrics: family_names(metrics) == ONLY_UP, "reading 1 GPU"),
    "functions of an old driver": ([], "old", without("persia_gpu_tensor_active_ratio", "persia_gpu_memory_reserved_bytes"), READING[0]),
    "nothing is supported": (NONE_SUPPORTED, "now", lambda metrics: family_names(metrics) == ONLY_UP, "reading 1 GPU"),
    "no GPM": (["do nvmlGpmQueryDeviceSupport error 3"], "now", without("persia_gpu_tensor_active_ratio"), READING[0]),
    "no events": (["do nvmlEventSetCreate error 3"], "now", without(), READING[0]),
    "a wait for events that fails at once": (["do nvmlEventSetWait error 15"], "now", without(), READING[0]),
    "no device": (["devices 0"], "now", lambda metrics: family_names(metrics) == set(), "reading 0 GPUs"),
    "devices that cannot be counted": (["do nvmlDeviceGetCount error 999"], "now", lambda metrics: family_names(metrics) == set(), "reading 0 GPUs"),
    "devices of other containers": (["devices 2", "do nvmlDeviceGetHandleByIndex error 4"], "now", lambda metrics: family_names(metrics) == set(), "reading 0 GPUs"),
    "impossible values": (
        ["set utilization 0 4294967295", "set temperature 0 4294967295", "set power 0 4294967295", "set energy 0 18446744073709551615"],
        "now",
        lambda metrics: "persia_gpu_clock_sm_hertz" in family_names(metrics) and not family_names(metrics) & IMPOSSIBLE,
        READING[0],
    ),
    "texts without an end, and of many lines": (
        ["text name 0 " + "y" * 200, 'text uuid 0 GPU-\t"\\\xff'],
        "now",
        lambda metrics: metrics.one("persia_gpu_info", model="y" * 96) == 1,
        READING[0],
    ),
    "a library that prints": (["do nvmlDeviceGetPowerUsage print"], "now", without(), READING[0]),
    "a slow library": (["do nvmlDeviceGetPowerUsage slow 300"], "now", without(), READING[0]),
}


@pytest.mark.parametrize("lines, library, is_so, said", STRANGE.values(), ids=STRANGE)
def test_a_library_that_is_strange(host, lines, library, is_so, said):
    host.start(*lines, library=library)
    host.wait_for(lambda: host.metrics().one("persia_agent_gpu_reader_up") == 1 and is_so(host.metrics()), "its values")
    host.check([said])


def test_a_library_that_fails_for_a_while(host):
    host.start()
    host.wait_for_ranks(gpu_0="no_rank")
    host.describe("do nvmlDeviceGetPowerUsage crash")
    host.wait_for(lambda: host.metrics().one("persia_agent_gpu_reader_up") == 0, "its end")
    host.describe("")
    host.wait_for(lambda: host.metrics().one("persia_agent_gpu_reader_up") == 1 and host.metrics().one("persia_gpu_power_watts") == 350, "its values")
    os.kill(wait_until(host.reader, "the reader"), signal.SIGKILL)
    host.wait_for(lambda: (host.metrics().one("persia_agent_gpu_reader_restarts_total") or 0) >= 2 and host.metrics().one("persia_agent_gpu_reader_up") == 1, "its values")
    # It is not over before a process has run for long.
    host.check([READING[0], "crashed by SIGSEGV"])


# --- ranks


def rank_of(number):
    """What the driver's pids say: nothing in a container."""
    return f"rep_{number}" if IN_INITIAL_NAMESPACE else "no_rank"


def test_eight_gpus_of_eight_ranks(host):
    ranks = [host.rank(number) for number in range(8)]
    host.start("devices 8", *(f"pids {7 - number} {rank.popen.pid} 1" for number, rank in enumerate(ranks)))
    host.wait_for_ranks(**{f"gpu_{7 - number}": rank_of(number) for number in range(8)})
    assert host.values("persia_gpu_power_watts") == {str(7 - number): (rank_of(number), 350) for number in range(8)}
    # The rank is gone: its device belongs to nobody.
    ranks[3].kill()
    host.wait_for_ranks(**{f"gpu_{7 - number}": rank_of(number) if number != 3 else "no_rank" for number in range(8)})
    host.check(["reading 8 GPUs"])


def test_devices_of_strangers_and_of_several_ranks_have_none(host):
    ranks = [host.rank(number) for number in range(2)]
    both = " ".join(str(rank.popen.pid) for rank in ranks)
    many = " ".join(str(pid) for pid in range(900000, 900200))
    host.start("devices 4", f"pids 0 {os.getpid()}", f"pids 1 {both}", f"pids 2 {many} {ranks[1].popen.pid}", f"pids 3 {ranks[1].popen.pid}")
    host.wait_for_ranks(gpu_0="no_rank", gpu_1="no_rank", gpu_2=rank_of(1), gpu_3=rank_of(1))
    host.check(["reading 4 GPUs"])


GPU = "GPU-{:08d}-0000-0000-0000-000000000000".format
MASKS = {
    "a uuid": ([{"CUDA_VISIBLE_DEVICES": GPU(1)}, {"CUDA_VISIBLE_DEVICES": GPU(0)}], ("rep_1", "rep_0")),
    "an index in the driver's order": (
        [{"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, {"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}],
        ("rep_1", "rep_0"),
    ),
    "one rank without a mask": ([{"CUDA_VISIBLE_DEVICES": GPU(1)}, {}], ("no_rank", "no_rank")),
}


@pytest.mark.parametrize("environments, expected", MASKS.values(), ids=MASKS)
def test_masks(host, monkeypatch, environments, expected):
    for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.delenv(name, raising=False)
    host.start("devices 2", "do nvmlDeviceGetComputeRunningProcesses error 3")
    for number, environment in enumerate(environments):
        host.rank(number, **environment)
    host.wait_for(lambda: len({dict(labels)["instance"] for name, labels in host.metrics() if name == "persia_process_up"}) == 2, "both ranks")
    host.wait_for_ranks(gpu_0=expected[0], gpu_1=expected[1])
    host.check(["reading 2 GPUs"])


def test_mig_devices(host):
    ranks = [host.rank(number) for number in range(2)]
    host.start("devices 2", "mig 0 2", f"pids 0 {ranks[0].popen.pid} {ranks[1].popen.pid}", f"pids 0:0 {ranks[0].popen.pid}", f"pids 0:1 {ranks[1].popen.pid}")
    host.wait_for_ranks(gpu_0="no_rank", gpu_0_0=rank_of(0), gpu_0_1=rank_of(1), gpu_1="no_rank")
    assert host.metrics().one("persia_gpu_info", gpu="0:1", parent_uuid=GPU(0), uuid="MIG-00000000-0002-0000-0000-000000000000") == 1
    assert host.values("persia_gpu_memory_used_bytes")["0:0"] == (rank_of(0), 20 << 30)
    host.add("xid 0 94 8")
    host.wait_for(lambda: host.values("persia_gpu_xid_errors_total") == {"0:1": (rank_of(1), 1)}, "the error of the MIG device")
    host.check(["reading 4 GPUs", "GPU 0:1 (MIG-00000000-0002"])


# --- devices that fail


@pytest.mark.parametrize("how", ["lost 1", "gone 1"])
def test_a_lost_gpu(host, how):
    rank = host.rank(0)
    host.start("devices 2", f"pids 1 {rank.popen.pid}")
    host.wait_for_ranks(gpu_0="no_rank", gpu_1=rank_of(0))
    host.add(how)
    host.wait_for(lambda: host.values("persia_gpu_up") == {"0": ("no_rank", 1), "1": (rank_of(0), 0)}, "the loss, on its rank")
    assert set(host.values("persia_gpu_power_watts")) == {"0"}
    host.check(["reading 2 GPUs", "GPU 1 (GPU-00000001"])


def test_errors_are_counts_events_and_lines_and_outlive_rank_and_agent(host, tmp_path):
    rank = host.rank(0)
    events = tmp_path / "events.json"
    flags = [f"--events-file={events}", "--run-id=run_1", f"--state-dir={tmp_path}"]
    host.start("devices 1", f"pids 0 {rank.popen.pid}", "xid 0 13", flags=flags)
    host.wait_for_ranks(gpu_0=rank_of(0))
    host.add("xid 0 79", "xid 0 31", "xid 0 79", "xid 0 4711")
    expected = {("79", "fatal"): 2, ("31", "application"): 1, ("4711", "other"): 1}

    def counts():
        found = [(dict(labels), value) for (name, labels), value in host.metrics().items() if name == "persia_gpu_xid_errors_total"]
        assert all(labels["instance"] == rank_of(0) and labels["gpu"] == "0" for labels, _ in found)
        return {(labels["xid"], labels["class"]): value for labels, value in found}

    host.wait_for(lambda: counts() == expected, "the counts; those before the start are not known")
    recorded = [json.loads(line) for line in events.read_text().splitlines()]
    (first, *more) = [event for event in recorded if event["name"] == "gpu_xid"]
    assert len(more) == 3 and first["type"] == "persia.agent"
    assert first["metadata"]["xid"] == 79 and first["metadata"]["class"] == "fatal" and first["metadata"]["uuid"] == GPU(0)
    shown = json.loads(fetch(host.agent.url + "/api/v1/events?type=persia.agent")[1])
    assert "gpu_xid" in json.dumps(shown)
    host.check(READING + ["XID 79, GPU has fallen off the bus; class fatal", "XID 31", "XID 79", "XID 4711"])
    rank.kill()
    host.wait_for_ranks(gpu_0="no_rank")
    assert counts() == expected
    host.agent.kill()
    host.agent = host.job.agent("--gpu=off", *flags)
    host.wait_for(lambda: counts() == expected, "the counts, by the next agent")
    host.add("xid 0 79")
    assert host.reader() is None


# --- on and off


def test_without_a_library_there_is_no_process_no_thread_and_no_metric(host):
    host.start(library=None)
    host.wait_for(lambda: host.metrics().one("persia_agent_collect_duration_seconds_count") > 2, "three collections")
    assert host.reader() is None and "gpu reader" not in threads_of_process(host.agent.popen.pid)
    assert not [name for name, _ in host.metrics() if "gpu" in name]
    host.check([])


def test_a_reload_switches_it_off_and_on(host, tmp_path):
    settings = tmp_path / "settings.yaml"
    settings.write_text("PersiaMetricsConfig: {gpu: auto}\n")
    host.describe()
    agent = host.start(flags=[f"--config={settings}"])
    host.wait_for_ranks(gpu_0="no_rank")
    reader = host.reader()
    settings.write_text("PersiaMetricsConfig: {gpu: off}\n")
    agent.signal(signal.SIGHUP)
    host.wait_for(lambda: not Path(f"/proc/{reader}").exists() and not family_names(host.metrics()), "the end of the reader")
    settings.write_text("PersiaMetricsConfig: {gpu: auto}\n")
    agent.signal(signal.SIGHUP)
    host.wait_for_ranks(gpu_0="no_rank")
    host.check(READING + READING)
    host.ends()


def test_a_killed_agent_leaves_no_reader(host):
    host.start("do nvmlDeviceGetPowerUsage hang 300")
    reader = wait_until(host.reader, "the reader")
    host.agent.kill()
    wait_until(lambda: state(reader) == "Z", "the end of the reader")
