#include "gpu/gpu_fields.h"

#include <cmath>

namespace persia::agent {
namespace {

constexpr MetricType kCounter = MetricType::kCounter;
constexpr MetricType kGauge = MetricType::kGauge;

constexpr std::string_view kEccHelp = "ECC memory errors since the driver was loaded, by kind.";
constexpr std::string_view kEccLifetimeHelp = "ECC memory errors in the device's life, by kind.";
constexpr std::string_view kNvlinkErrorsHelp = "Errors of all NVLink links, by kind.";
constexpr std::string_view kRemappedHelp = "Memory rows that are remapped because of errors, by kind of error.";
constexpr std::string_view kRetiredHelp = "Memory pages that are retired because of errors, by cause.";
constexpr std::string_view kThrottledHelp = "1 if the clocks are lower than they could be for this reason, else 0.";

// No device counts, transfers, stores or draws more.
constexpr double kMost = 1e18;
constexpr double kColdest = -273;

}  // namespace

const std::array<GpuFieldAbout, kGpuFields> kGpuFieldTable{{
    {"persia_gpu_clock_max_sm_hertz", kGauge, "Highest clock of the SMs."},
    {"persia_gpu_clock_memory_hertz", kGauge, "Clock of the memory."},
    {"persia_gpu_clock_sm_hertz", kGauge, "Clock of the SMs."},
    {"persia_gpu_decoder_utilization_ratio", kGauge, "Share of the time in which the video decoder was busy."},
    {"persia_gpu_dram_active_ratio", kGauge, "Share of the memory's bandwidth in use, by GPM: Hopper and later."},
    {"persia_gpu_ecc_errors_total", kCounter, kEccHelp, "kind", "corrected"},
    {"persia_gpu_ecc_errors_total", kCounter, kEccHelp, "kind", "uncorrected"},
    {"persia_gpu_ecc_lifetime_errors_total", kCounter, kEccLifetimeHelp, "kind", "corrected"},
    {"persia_gpu_ecc_lifetime_errors_total", kCounter, kEccLifetimeHelp, "kind", "uncorrected"},
    {"persia_gpu_encoder_utilization_ratio", kGauge, "Share of the time in which the video encoder was busy."},
    {"persia_gpu_energy_joules_total", kCounter, "Energy since the driver was loaded."},
    {"persia_gpu_fp16_active_ratio", kGauge, "Share of the time in which FP16 pipes without tensor cores were active, by GPM."},
    {"persia_gpu_fp32_active_ratio", kGauge, "Share of the time in which FP32 pipes without tensor cores were active, by GPM."},
    {"persia_gpu_fp64_active_ratio", kGauge, "Share of the time in which FP64 pipes without tensor cores were active, by GPM."},
    {"persia_gpu_graphics_active_ratio", kGauge, "Share of the time in which any kernel or graphics was active, by GPM."},
    {"persia_gpu_memory_free_bytes", kGauge, "Memory that is neither used nor reserved."},
    {"persia_gpu_memory_reserved_bytes", kGauge, "Memory that the driver and the firmware keep for themselves."},
    {"persia_gpu_memory_temperature_celsius", kGauge, "Temperature of the memory."},
    {"persia_gpu_memory_total_bytes", kGauge, "All memory of the device."},
    {"persia_gpu_memory_used_bytes", kGauge, "Memory that processes have allocated."},
    {"persia_gpu_memory_utilization_ratio", kGauge, "Share of the time in which the memory was read or written."},
    {"persia_gpu_nvlink_errors_total", kCounter, kNvlinkErrorsHelp, "kind", "crc_data"},
    {"persia_gpu_nvlink_errors_total", kCounter, kNvlinkErrorsHelp, "kind", "crc_flit"},
    {"persia_gpu_nvlink_errors_total", kCounter, kNvlinkErrorsHelp, "kind", "recovery"},
    {"persia_gpu_nvlink_errors_total", kCounter, kNvlinkErrorsHelp, "kind", "replay"},
    {"persia_gpu_nvlink_received_bytes_total", kCounter, "Data received by all NVLink links."},
    {"persia_gpu_nvlink_transmitted_bytes_total", kCounter, "Data sent by all NVLink links."},
    {"persia_gpu_pcie_received_bytes_per_second", kGauge, "PCIe traffic to the device, measured over 20 ms."},
    {"persia_gpu_pcie_replays_total", kCounter, "PCIe packets that were sent again."},
    {"persia_gpu_pcie_transmitted_bytes_per_second", kGauge, "PCIe traffic from the device, measured over 20 ms."},
    {"persia_gpu_power_limit_watts", kGauge, "Power limit in force."},
    {"persia_gpu_power_watts", kGauge, "Power draw."},
    {"persia_gpu_remapped_rows", kGauge, kRemappedHelp, "kind", "correctable"},
    {"persia_gpu_remapped_rows", kGauge, kRemappedHelp, "kind", "uncorrectable"},
    {"persia_gpu_retired_pages", kGauge, kRetiredHelp, "cause", "double_bit"},
    {"persia_gpu_retired_pages", kGauge, kRetiredHelp, "cause", "single_bit"},
    {"persia_gpu_retired_pages_pending", kGauge, "1 if pages are to be retired when the driver is loaded next, else 0."},
    {"persia_gpu_row_remap_failed", kGauge, "1 if a memory row could not be remapped, else 0: the device is to be replaced."},
    {"persia_gpu_row_remap_pending", kGauge, "1 if rows are to be remapped at the next reset of the device, else 0."},
    {"persia_gpu_sm_active_ratio", kGauge, "Share of the SMs that were busy, by GPM: Hopper and later."},
    {"persia_gpu_sm_occupancy_ratio", kGauge, "Share of the possible warps that were resident, by GPM: Hopper and later."},
    {"persia_gpu_temperature_celsius", kGauge, "Temperature of the GPU."},
    {"persia_gpu_tensor_active_ratio", kGauge,
     "Share of the time in which tensor cores were active, by GPM: Hopper and later."},
    {"persia_gpu_throttled", kGauge, kThrottledHelp, "reason", "applications_clocks_setting"},
    {"persia_gpu_throttled", kGauge, kThrottledHelp, "reason", "hw_power_brake"},
    {"persia_gpu_throttled", kGauge, kThrottledHelp, "reason", "hw_slowdown"},
    {"persia_gpu_throttled", kGauge, kThrottledHelp, "reason", "hw_thermal"},
    {"persia_gpu_throttled", kGauge, kThrottledHelp, "reason", "sw_power_cap"},
    {"persia_gpu_throttled", kGauge, kThrottledHelp, "reason", "sw_thermal"},
    {"persia_gpu_throttled", kGauge, kThrottledHelp, "reason", "sync_boost"},
    {"persia_gpu_utilization_ratio", kGauge, "Share of the time in which a kernel ran."},
}};

bool IsGpuValue(GpuField field, double value) {
  if (!std::isfinite(value) || value > kMost) return false;
  const std::string_view family = kGpuFieldTable[field].family;
  if (family.ends_with("_celsius")) return value >= kColdest;
  if (value < 0) return false;
  const bool is_share = family.ends_with("_ratio") || family == "persia_gpu_throttled" || family.ends_with("_pending") ||
                        family == "persia_gpu_row_remap_failed";
  return !is_share || value <= 1;
}

}  // namespace persia::agent
