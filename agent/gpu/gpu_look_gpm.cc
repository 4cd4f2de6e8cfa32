// GPM, the performance monitoring of Hopper and later: the library computes values of the time between two samples.
#include <cstddef>
#include <iterator>
#include <utility>

#include "gpu/gpu_look.h"

namespace persia::agent {
namespace {

constexpr double kWhole = 100;  // percent

// NVML_GPM_METRIC_*
constexpr std::pair<unsigned, GpuField> kGpmMetrics[] = {
    {1, kGpuGraphicsActive}, {2, kGpuSmActive},    {3, kGpuSmOccupancy}, {5, kGpuTensorActive},
    {10, kGpuDramActive},    {11, kGpuFp64Active}, {12, kGpuFp32Active}, {13, kGpuFp16Active},
};

}  // namespace

// `handle`: of the GPU, also for a MIG device.
void GpuLook::ReadGpm(nvml::Device handle, GpuDevice& device) {
  const bool is_mig = device.IsMig();
  if (call_.gpm_support == nullptr || call_.gpm_alloc == nullptr || call_.gpm_metrics == nullptr) return;
  if (is_mig ? call_.gpm_mig_sample == nullptr : call_.gpm_sample == nullptr) return;
  GpmState& state = gpm_[device.gpu];
  if (!std::exchange(state.is_known, true)) {
    nvml::GpmSupport support{.version = nvml::kGpmVersion, .is_supported = 0};
    if (!Good(call_.gpm_support(handle, &support), device) || support.is_supported == 0) return;
    if (call_.gpm_alloc(&state.before) != nvml::kSuccess || call_.gpm_alloc(&state.after) != nvml::kSuccess)
      state.after = nullptr;
  }
  if (state.after == nullptr) return;
  const nvml::Return taken =
      is_mig ? call_.gpm_mig_sample(handle, device.gpu_instance, state.after) : call_.gpm_sample(handle, state.after);
  if (!Good(taken, device)) {
    state.has_before = false;
    return;
  }
  std::swap(state.before, state.after);
  if (!std::exchange(state.has_before, true)) return;
  // Static, because it has 20 KiB.
  static nvml::GpmMetricsGet get{};
  get.version = nvml::kGpmVersion;
  get.count = std::size(kGpmMetrics);
  get.before = state.after;
  get.after = state.before;
  for (size_t i = 0; i < std::size(kGpmMetrics); ++i)
    get.metrics[i] = {.id = kGpmMetrics[i].first, .result = nvml::kNotSupported, .value = 0, .texts = {}};
  if (!Good(call_.gpm_metrics(&get), device)) return;
  for (size_t i = 0; i < std::size(kGpmMetrics); ++i)
    if (get.metrics[i].result == nvml::kSuccess) Set(device, kGpmMetrics[i].second, get.metrics[i].value / kWhole);
}

}  // namespace persia::agent
