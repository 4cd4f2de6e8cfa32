#include "gpu/nvml_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

#include "supervisor/library_path.h"

namespace persia::agent {
namespace {

constexpr char kFile[] = "libnvidia-ml.so.1";

// The linker's folders, and those of GKE's and the GPU operator's device plugins, of WSL and of NixOS.
constexpr const char* kFolders[] = {
#ifdef __x86_64__
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu",
#elif defined(__aarch64__)
    "lib/aarch64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
#endif
    "lib64",
    "usr/lib64",
    "lib",
    "usr/lib",
    "usr/local/nvidia/lib64",
    "usr/lib/wsl/lib",
    "run/opengl-driver/lib",
};

bool IsFile(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

// The names in the cache end with a zero byte.
bool CacheLists(const std::filesystem::path& cache) {
  std::ifstream file(cache, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  return content.find(std::string_view(kFile, sizeof kFile)) != std::string::npos;
}

// The first of the names that the library has.
template <class Function>
void Find(void* library, Function& function, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (function == nullptr) function = reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

std::string FindNvml(const std::filesystem::path& root, const std::function<const char*(const char* name)>& variable) {
  const char* const search_path = variable ? variable(supervisor::kLibraryPath) : std::getenv(supervisor::kLibraryPath);
  std::string_view rest = search_path == nullptr ? "" : search_path;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find_first_of(":;"));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    const std::filesystem::path path = std::filesystem::path(folder) / kFile;
    if (!folder.empty() && IsFile(path)) return path;
  }
  if (CacheLists(root / "etc/ld.so.cache")) return kFile;
  for (const char* folder : kFolders) {
    const std::filesystem::path path = root / folder / kFile;
    if (IsFile(path)) return path;
  }
  return "";
}

Status NvmlLibrary::Load(const std::string& file) {
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    return Error{"cannot load " + file + ": " + (why == nullptr ? "unknown" : why)};
  }
  nvml::Functions& f = functions_;
  const auto find = [library](auto& function, std::initializer_list<const char*> names) { Find(library, function, names); };
  find(f.init, {"nvmlInit_v2", "nvmlInit"});
  find(f.shutdown, {"nvmlShutdown"});
  find(f.driver_version, {"nvmlSystemGetDriverVersion"});
  find(f.device_count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"});
  find(f.device_by_index, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
  find(f.name, {"nvmlDeviceGetName"});
  find(f.uuid, {"nvmlDeviceGetUUID"});
  find(f.pci_info, {"nvmlDeviceGetPciInfo_v3"});
  find(f.utilization, {"nvmlDeviceGetUtilizationRates"});
  find(f.encoder, {"nvmlDeviceGetEncoderUtilization"});
  find(f.decoder, {"nvmlDeviceGetDecoderUtilization"});
  find(f.memory, {"nvmlDeviceGetMemoryInfo"});
  find(f.memory_v2, {"nvmlDeviceGetMemoryInfo_v2"});
  find(f.power, {"nvmlDeviceGetPowerUsage"});
  find(f.power_limit, {"nvmlDeviceGetEnforcedPowerLimit"});
  find(f.energy, {"nvmlDeviceGetTotalEnergyConsumption"});
  find(f.temperature, {"nvmlDeviceGetTemperature"});
  find(f.clock, {"nvmlDeviceGetClockInfo"});
  find(f.max_clock, {"nvmlDeviceGetMaxClockInfo"});
  find(f.throttle_reasons, {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  find(f.pcie_throughput, {"nvmlDeviceGetPcieThroughput"});
  find(f.pcie_replays, {"nvmlDeviceGetPcieReplayCounter"});
  find(f.ecc_errors, {"nvmlDeviceGetTotalEccErrors"});
  find(f.field_values, {"nvmlDeviceGetFieldValues"});
  // Not the first version, which has a smaller struct.
  find(f.processes, {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"});
  find(f.mps_processes, {"nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v2"});
  find(f.mig_mode, {"nvmlDeviceGetMigMode"});
  find(f.max_mig_devices, {"nvmlDeviceGetMaxMigDeviceCount"});
  find(f.mig_device, {"nvmlDeviceGetMigDeviceHandleByIndex"});
  find(f.gpu_instance, {"nvmlDeviceGetGpuInstanceId"});
  find(f.compute_instance, {"nvmlDeviceGetComputeInstanceId"});
  find(f.event_set_create, {"nvmlEventSetCreate"});
  find(f.register_events, {"nvmlDeviceRegisterEvents"});
  // In the first version the event has no instances: its struct is the beginning of this one.
  find(f.event_wait, {"nvmlEventSetWait_v2", "nvmlEventSetWait"});
  find(f.gpm_support, {"nvmlGpmQueryDeviceSupport"});
  find(f.gpm_alloc, {"nvmlGpmSampleAlloc"});
  find(f.gpm_sample, {"nvmlGpmSampleGet"});
  find(f.gpm_mig_sample, {"nvmlGpmMigSampleGet"});
  find(f.gpm_metrics, {"nvmlGpmMetricsGet"});
  if (f.init == nullptr || f.device_count == nullptr || f.device_by_index == nullptr) {
    return Error{file +
                 " is no library of NVIDIA's driver, or is older than 2012: it lacks nvmlInit, nvmlDeviceGetCount or "
                 "nvmlDeviceGetHandleByIndex"};
  }
  return Done{};
}

std::string NvmlErrorText(nvml::Return error) {
  switch (error) {
    case nvml::kDriverNotLoaded:
      return "the NVIDIA driver is not loaded";
    case nvml::kGpuIsLost:
      return "the GPU has fallen off the bus";
    case nvml::kResetRequired:
      return "the GPU must be reset";
    case nvml::kVersionMismatch:
      return "the library's version is not that of the loaded driver: after an update of the driver, load it again or reboot";
    case nvml::kNoPermission:
      return "no permission to use the driver";
    case nvml::kOperatingSystem:
      return "the operating system blocks the driver's devices, for example by a cgroup";
    default:
      return "NVML error " + std::to_string(error);
  }
}

}  // namespace persia::agent
