#include "gpu/gpu_look.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <thread>
#include <utility>

#include "base/text.h"
#include "gpu/nvml_library.h"

namespace persia::agent {
namespace {

// Divisors: a product with 0.01 would print as 0.5700000000000001.
constexpr double kPercent = 100;
constexpr double kMilli = 1000;
constexpr double kMega = 1e6;
constexpr double kKilo = 1e3;
constexpr double kKibi = 1024;

constexpr std::pair<unsigned long long, GpuField> kThrottleReasons[] = {
    {0x2, kGpuThrottledApplicationClocks}, {0x4, kGpuThrottledSwPowerCap}, {0x8, kGpuThrottledHwSlowdown},
    {0x10, kGpuThrottledSyncBoost},        {0x20, kGpuThrottledSwThermal}, {0x40, kGpuThrottledHwThermal},
    {0x80, kGpuThrottledHwPowerBrake},
};

struct NvmlField {
  unsigned id;
  unsigned scope;
  GpuField field;
  double scale;
};
constexpr NvmlField kNvmlFields[] = {
    {nvml::kMemoryTemperature, 0, kGpuMemoryTemperature, 1},
    {nvml::kRetiredSingleBit, 0, kGpuRetiredSingleBit, 1},
    {nvml::kRetiredDoubleBit, 0, kGpuRetiredDoubleBit, 1},
    {nvml::kRetiredPending, 0, kGpuRetiredPending, 1},
    {nvml::kRemappedCorrectable, 0, kGpuRemappedCorrectable, 1},
    {nvml::kRemappedUncorrectable, 0, kGpuRemappedUncorrectable, 1},
    {nvml::kRemapPending, 0, kGpuRemapPending, 1},
    {nvml::kRemapFailed, 0, kGpuRemapFailed, 1},
    {nvml::kNvlinkCrcFlitErrors, 0, kGpuNvlinkCrcFlit, 1},
    {nvml::kNvlinkCrcDataErrors, 0, kGpuNvlinkCrcData, 1},
    {nvml::kNvlinkReplayErrors, 0, kGpuNvlinkReplay, 1},
    {nvml::kNvlinkRecoveryErrors, 0, kGpuNvlinkRecovery, 1},
    {nvml::kNvlinkTransmit, nvml::kAllLinks, kGpuNvlinkTransmitted, kKibi},
    {nvml::kNvlinkReceive, nvml::kAllLinks, kGpuNvlinkReceived, kKibi},
};

// Not a value: Set ignores it.
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// A number of the driver. All bits set: NVML_VALUE_NOT_AVAILABLE.
template <class T>
double NumberOf(T value) {
  return value == static_cast<T>(-1) ? kUnknown : static_cast<double>(value);
}

// The driver ends a text within its buffer. If it does not, the text is cut.
template <size_t kSize>
std::string Text(const std::array<char, kSize>& buffer) {
  const auto end = std::find(buffer.begin(), buffer.end(), '\0');
  return OneLine(std::string_view(buffer.data(), static_cast<size_t>(end - buffer.begin())));
}

double FieldNumber(const nvml::FieldValue& value) {
  switch (value.type) {
    case 0:
      return value.value.as_double;
    case 1:
      return NumberOf(value.value.as_unsigned);
    case 2:
      return NumberOf(value.value.as_unsigned_long);
    case 3:
      return NumberOf(value.value.as_unsigned_long_long);
    case 4:
      return static_cast<double>(value.value.as_long_long);
    case 5:
      return value.value.as_int;
    case 6:
      return value.value.as_unsigned_short;
    default:
      return kUnknown;  // a type of a newer driver
  }
}

uint64_t UnixMilliseconds() {
  using std::chrono::milliseconds;
  return static_cast<uint64_t>(
      std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count());
}

uint64_t BootNanoseconds() {
  struct timespec now {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

Status GpuLook::Open() {
  if (const nvml::Return result = call_.init(); result != nvml::kSuccess) return Error{NvmlErrorText(result)};
  std::array<char, nvml::kNameBytes> text{};
  if (call_.driver_version != nullptr && call_.driver_version(text.data(), text.size()) == nvml::kSuccess) driver_ = Text(text);
  if (call_.event_set_create != nullptr && call_.event_set_create(&events_) != nvml::kSuccess) events_ = nullptr;
  return Done{};
}

GpuSample GpuLook::Sample() {
  GpuSample sample{.boot_ns = BootNanoseconds(), .driver = driver_};
  unsigned count = 0;
  if (call_.device_count(&count) != nvml::kSuccess) return sample;
  for (unsigned index = 0; index < count && sample.devices.size() < GpuMessages::kMaxDevices; ++index) {
    nvml::Device handle = nullptr;
    GpuDevice device{.gpu = std::to_string(index)};
    const nvml::Return found = call_.device_by_index(index, &handle);
    if (Good(found, device))
      device = ReadDevice(index, handle);
    else if (!device.is_lost)
      continue;  // for example, a device of another container
    sample.devices.push_back(device);
    if (found == nvml::kSuccess && !device.is_lost) AddMigDevices(device, handle, sample.devices);
  }
  return sample;
}

bool GpuLook::Good(nvml::Return result, GpuDevice& device) const {
  if (result == nvml::kGpuIsLost || result == nvml::kResetRequired) device.is_lost = true;
  return result == nvml::kSuccess;
}

void GpuLook::Set(GpuDevice& device, GpuField field, double value) {
  if (IsGpuValue(field, value)) device.values[field] = value;
}

GpuDevice GpuLook::ReadDevice(unsigned index, nvml::Device handle) {
  GpuDevice device{.gpu = std::to_string(index)};
  ReadTexts(handle, device);
  ReadUse(handle, device);
  ReadPower(handle, device);
  ReadErrors(handle, device);
  ReadFields(handle, device);
  ReadGpm(handle, device);
  ReadProcesses(handle, device);
  if (watched_.emplace(handle, device.gpu).second) Watch(handle);
  unsigned current = 0;
  unsigned pending = 0;
  device.is_divided = call_.mig_mode != nullptr && call_.mig_mode(handle, &current, &pending) == nvml::kSuccess && current == 1;
  if (device.is_lost) {
    device.values = GpuDevice::NoGpuValues();
    device.pids.clear();
  }
  return device;
}

void GpuLook::AddMigDevices(const GpuDevice& gpu, nvml::Device handle, std::vector<GpuDevice>& devices) {
  if (!gpu.is_divided || call_.mig_device == nullptr || call_.max_mig_devices == nullptr) return;
  unsigned count = 0;
  if (call_.max_mig_devices(handle, &count) != nvml::kSuccess) return;
  for (unsigned index = 0; index < count && devices.size() < GpuMessages::kMaxDevices; ++index) {
    nvml::Device mig = nullptr;
    if (call_.mig_device(handle, index, &mig) != nvml::kSuccess) continue;
    GpuDevice device{.gpu = gpu.gpu + ":" + std::to_string(index)};
    ReadTexts(mig, device);
    device.pci_bus_id = gpu.pci_bus_id;
    device.parent_uuid = gpu.uuid.empty() ? "GPU-" + gpu.gpu : gpu.uuid;
    if (call_.gpu_instance == nullptr || call_.gpu_instance(mig, &device.gpu_instance) != nvml::kSuccess)
      device.gpu_instance = nvml::kNoInstance;
    if (call_.compute_instance == nullptr || call_.compute_instance(mig, &device.compute_instance) != nvml::kSuccess)
      device.compute_instance = nvml::kNoInstance;
    ReadUse(mig, device);
    ReadProcesses(mig, device);
    if (device.gpu_instance != nvml::kNoInstance) {
      ReadGpm(handle, device);
      mig_by_instance_[{gpu.gpu, device.gpu_instance}] = device.gpu;
    }
    devices.push_back(std::move(device));
  }
}

void GpuLook::ReadTexts(nvml::Device handle, GpuDevice& device) {
  std::array<char, nvml::kNameBytes> text{};
  if (call_.name != nullptr && Good(call_.name(handle, text.data(), text.size()), device)) device.model = Text(text);
  text = {};
  if (call_.uuid != nullptr && Good(call_.uuid(handle, text.data(), text.size()), device)) device.uuid = Text(text);
  nvml::PciInfo pci{};
  if (call_.pci_info == nullptr || !Good(call_.pci_info(handle, &pci), device)) return;
  std::array<char, sizeof pci.bus_id> bus_id{};
  std::copy(std::begin(pci.bus_id), std::end(pci.bus_id), bus_id.begin());
  device.pci_bus_id = Text(bus_id);
}

void GpuLook::ReadUse(nvml::Device handle, GpuDevice& device) {
  nvml::Utilization utilization{};
  if (call_.utilization != nullptr && Good(call_.utilization(handle, &utilization), device)) {
    Set(device, kGpuUtilization, utilization.gpu / kPercent);
    Set(device, kGpuMemoryUtilization, utilization.memory / kPercent);
  }
  unsigned percent = 0;
  unsigned period = 0;
  if (call_.encoder != nullptr && Good(call_.encoder(handle, &percent, &period), device))
    Set(device, kGpuEncoder, percent / kPercent);
  if (call_.decoder != nullptr && Good(call_.decoder(handle, &percent, &period), device))
    Set(device, kGpuDecoder, percent / kPercent);
  nvml::MemoryV2 memory{.version = nvml::kMemoryV2, .total = 0, .reserved = 0, .free = 0, .used = 0};
  nvml::Memory old{};
  if (call_.memory_v2 != nullptr && Good(call_.memory_v2(handle, &memory), device))
    Set(device, kGpuMemoryReserved, static_cast<double>(memory.reserved));
  else if (call_.memory != nullptr && Good(call_.memory(handle, &old), device))
    memory = {.version = 0, .total = old.total, .reserved = 0, .free = old.free, .used = old.used};
  else
    return;
  Set(device, kGpuMemoryTotal, static_cast<double>(memory.total));
  Set(device, kGpuMemoryFree, static_cast<double>(memory.free));
  Set(device, kGpuMemoryUsed, static_cast<double>(memory.used));
}

void GpuLook::ReadPower(nvml::Device handle, GpuDevice& device) {
  const auto read = [&](auto function, GpuField field, double times, double over, auto... more) {
    unsigned value = 0;
    if (function == nullptr || !Good(function(handle, more..., &value), device)) return;
    Set(device, field, NumberOf(value) * times / over);
  };
  read(call_.power, kGpuPower, 1, kMilli);
  read(call_.power_limit, kGpuPowerLimit, 1, kMilli);
  unsigned long long energy = 0;
  if (call_.energy != nullptr && Good(call_.energy(handle, &energy), device))
    Set(device, kGpuEnergy, NumberOf(energy) / kMilli);
  read(call_.temperature, kGpuTemperature, 1, 1, nvml::kTemperatureOfGpu);
  read(call_.clock, kGpuClockSm, kMega, 1, nvml::kClockSm);
  read(call_.clock, kGpuClockMemory, kMega, 1, nvml::kClockMemory);
  read(call_.max_clock, kGpuClockMaxSm, kMega, 1, nvml::kClockSm);
  unsigned long long reasons = 0;
  if (call_.throttle_reasons != nullptr && Good(call_.throttle_reasons(handle, &reasons), device))
    for (const auto& [bit, field] : kThrottleReasons) Set(device, field, (reasons & bit) != 0 ? 1 : 0);
  read(call_.pcie_throughput, kGpuPcieTransmitted, kKilo, 1, nvml::kPcieTransmit);
  read(call_.pcie_throughput, kGpuPcieReceived, kKilo, 1, nvml::kPcieReceive);
  read(call_.pcie_replays, kGpuPcieReplays, 1, 1);
}

void GpuLook::ReadErrors(nvml::Device handle, GpuDevice& device) {
  const auto read = [&](int type, int counter, GpuField field) {
    unsigned long long count = 0;
    if (call_.ecc_errors != nullptr && Good(call_.ecc_errors(handle, type, counter, &count), device))
      Set(device, field, NumberOf(count));
  };
  read(nvml::kEccCorrected, nvml::kEccSinceDriverLoad, kGpuEccCorrected);
  read(nvml::kEccUncorrected, nvml::kEccSinceDriverLoad, kGpuEccUncorrected);
  read(nvml::kEccCorrected, nvml::kEccLifetime, kGpuEccLifetimeCorrected);
  read(nvml::kEccUncorrected, nvml::kEccLifetime, kGpuEccLifetimeUncorrected);
}

void GpuLook::ReadFields(nvml::Device handle, GpuDevice& device) {
  if (call_.field_values == nullptr) return;
  std::array<nvml::FieldValue, std::size(kNvmlFields)> values{};
  for (size_t i = 0; i < values.size(); ++i) {
    values[i].field = kNvmlFields[i].id;
    values[i].scope = kNvmlFields[i].scope;
    values[i].result = nvml::kNotSupported;
  }
  if (!Good(call_.field_values(handle, static_cast<int>(values.size()), values.data()), device)) return;
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i].result == nvml::kSuccess) Set(device, kNvmlFields[i].field, FieldNumber(values[i]) * kNvmlFields[i].scale);
}

void GpuLook::ReadProcesses(nvml::Device handle, GpuDevice& device) {
  for (const auto function : {call_.processes, call_.mps_processes}) {
    if (function == nullptr) continue;
    std::vector<nvml::ProcessInfo> processes(64);
    // More processes may start between two calls.
    for (int tries = 0; tries < 3; ++tries) {
      auto count = static_cast<unsigned>(processes.size());
      const nvml::Return result = function(handle, &count, processes.data());
      if (result == nvml::kInsufficientSize && count <= GpuMessages::kMaxPids) {
        processes.resize(std::max<size_t>(count, 2 * processes.size()));
        continue;
      }
      if (!Good(result, device)) break;
      for (size_t i = 0; i < std::min<size_t>(count, processes.size()); ++i) device.pids.push_back(processes[i].pid);
      break;
    }
  }
  std::ranges::sort(device.pids);
  device.pids.erase(std::unique(device.pids.begin(), device.pids.end()), device.pids.end());
  if (device.pids.size() > GpuMessages::kMaxPids) device.pids.resize(GpuMessages::kMaxPids);
}

void GpuLook::Watch(nvml::Device handle) {
  if (events_ == nullptr || call_.register_events == nullptr) return;
  // A device that cannot report events is only read.
  static_cast<void>(call_.register_events(handle, nvml::kXidEvent, events_));
}

std::optional<GpuXid> GpuLook::WaitForXid(std::chrono::milliseconds timeout) {
  const auto began = std::chrono::steady_clock::now();
  nvml::EventData event{};
  event.gpu_instance = nvml::kNoInstance;
  nvml::Return result = nvml::kNotSupported;
  if (events_ != nullptr && call_.event_wait != nullptr)
    result = call_.event_wait(events_, &event, static_cast<unsigned>(timeout.count()));
  const auto device = watched_.find(event.device);
  if (result == nvml::kSuccess && (event.type & nvml::kXidEvent) != 0 && device != watched_.end()) {
    GpuXid xid{.gpu = device->second, .xid = event.data, .unix_ms = UnixMilliseconds()};
    const auto mig = mig_by_instance_.find({xid.gpu, event.gpu_instance});
    if (mig != mig_by_instance_.end()) xid.gpu = mig->second;
    return xid;
  }
  // After a device is lost, each call returns at once. Other events may arrive at any rate.
  constexpr std::chrono::milliseconds kLeastPause(10);
  std::chrono::nanoseconds left = timeout - (std::chrono::steady_clock::now() - began);
  if (result == nvml::kSuccess) left = std::min<std::chrono::nanoseconds>(left, kLeastPause);
  if (left.count() > 0) std::this_thread::sleep_for(left);
  return std::nullopt;
}

}  // namespace persia::agent
