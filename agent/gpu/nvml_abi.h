// NVIDIA's management library as this agent calls it: its functions' types, structs and constants.
//
// By nvml.h of CUDA 12 and 13 (docs.nvidia.com/deploy/nvml-api). NVIDIA never changes the parameters and structs of a function:
// a changed function has another name, such as nvmlInit_v2. So the agent is built without NVIDIA's header and library, and
// loads a library of any age. All structs are those of the newest names that NvmlLibrary looks up.
#pragma once

#include <cstddef>
#include <cstdint>

namespace persia::agent::nvml {

using Device = struct DeviceHandle*;
using EventSet = struct EventSetHandle*;
using GpmSample = struct GpmSampleHandle*;

// nvmlReturn_t
using Return = int;
inline constexpr Return kSuccess = 0;
inline constexpr Return kNotSupported = 3;
inline constexpr Return kNoPermission = 4;
inline constexpr Return kInsufficientSize = 7;
inline constexpr Return kDriverNotLoaded = 9;
inline constexpr Return kTimeout = 10;
inline constexpr Return kGpuIsLost = 15;
inline constexpr Return kResetRequired = 16;
inline constexpr Return kOperatingSystem = 17;
inline constexpr Return kVersionMismatch = 18;

inline constexpr size_t kNameBytes = 96;  // of any text
inline constexpr unsigned kNoInstance = 0xFFFF'FFFF;

// nvmlTemperatureSensors_t, nvmlClockType_t, nvmlPcieUtilCounter_t, nvmlMemoryErrorType_t, nvmlEccCounterType_t
inline constexpr int kTemperatureOfGpu = 0;
inline constexpr int kClockSm = 1;
inline constexpr int kClockMemory = 2;
inline constexpr int kPcieTransmit = 0;
inline constexpr int kPcieReceive = 1;
inline constexpr int kEccCorrected = 0;
inline constexpr int kEccUncorrected = 1;
inline constexpr int kEccSinceDriverLoad = 0;
inline constexpr int kEccLifetime = 1;

inline constexpr unsigned long long kXidEvent = 0x8;

struct Utilization {
  unsigned gpu;  // percent
  unsigned memory;
};

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct MemoryV2 {
  unsigned version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};
static_assert(sizeof(MemoryV2) == 40);
inline constexpr unsigned kMemoryV2 = sizeof(MemoryV2) | (2U << 24);

struct PciInfo {
  char legacy_bus_id[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

// Of nvmlDeviceGetComputeRunningProcesses_v2 and _v3.
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance;
  unsigned compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);

struct EventData {
  Device device;
  unsigned long long type;
  unsigned long long data;  // of an XID event: its number
  unsigned gpu_instance;    // kNoInstance without MIG
  unsigned compute_instance;
};
static_assert(sizeof(EventData) == 32);

// nvmlValue_t, nvmlValueType_t
union Value {
  double as_double;
  int as_int;
  unsigned as_unsigned;
  unsigned long as_unsigned_long;
  unsigned long long as_unsigned_long_long;
  long long as_long_long;
  unsigned short as_unsigned_short;
};

struct FieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp;
  long long latency;
  int type;
  Return result;
  Value value;
};
static_assert(sizeof(FieldValue) == 40);

// NVML_FI_*
inline constexpr unsigned kRetiredSingleBit = 29;
inline constexpr unsigned kRetiredDoubleBit = 30;
inline constexpr unsigned kRetiredPending = 31;
inline constexpr unsigned kNvlinkCrcFlitErrors = 38;
inline constexpr unsigned kNvlinkCrcDataErrors = 45;
inline constexpr unsigned kNvlinkReplayErrors = 52;
inline constexpr unsigned kNvlinkRecoveryErrors = 59;
inline constexpr unsigned kMemoryTemperature = 82;
inline constexpr unsigned kNvlinkTransmit = 138;  // KiB
inline constexpr unsigned kNvlinkReceive = 139;
inline constexpr unsigned kRemappedCorrectable = 142;
inline constexpr unsigned kRemappedUncorrectable = 143;
inline constexpr unsigned kRemapPending = 144;
inline constexpr unsigned kRemapFailed = 145;
inline constexpr unsigned kAllLinks = 0xFFFF'FFFF;  // as the scope

struct GpmSupport {
  unsigned version;
  unsigned is_supported;
};

struct GpmMetric {
  unsigned id;
  Return result;
  double value;
  const char* texts[3];
};
static_assert(sizeof(GpmMetric) == 40);

// The library's struct ends with an array of all of its metrics, and grows with them. The library reads and writes `count`
// entries.
struct GpmMetricsGet {
  static constexpr size_t kMetrics = 512;
  unsigned version;
  unsigned count;
  GpmSample before;
  GpmSample after;
  GpmMetric metrics[kMetrics];
};
inline constexpr unsigned kGpmVersion = 1;

// The functions, by the names that NvmlLibrary looks up.
struct Functions {
  Return (*init)();
  Return (*shutdown)();
  Return (*driver_version)(char*, unsigned);
  Return (*device_count)(unsigned*);
  Return (*device_by_index)(unsigned, Device*);
  Return (*name)(Device, char*, unsigned);
  Return (*uuid)(Device, char*, unsigned);
  Return (*pci_info)(Device, PciInfo*);
  Return (*utilization)(Device, Utilization*);
  Return (*encoder)(Device, unsigned* percent, unsigned* period);
  Return (*decoder)(Device, unsigned* percent, unsigned* period);
  Return (*memory)(Device, Memory*);
  Return (*memory_v2)(Device, MemoryV2*);
  Return (*power)(Device, unsigned* milliwatts);
  Return (*power_limit)(Device, unsigned* milliwatts);
  Return (*energy)(Device, unsigned long long* millijoules);
  Return (*temperature)(Device, int sensor, unsigned*);
  Return (*clock)(Device, int type, unsigned* megahertz);
  Return (*max_clock)(Device, int type, unsigned* megahertz);
  Return (*throttle_reasons)(Device, unsigned long long*);
  Return (*pcie_throughput)(Device, int counter, unsigned* kilobytes);
  Return (*pcie_replays)(Device, unsigned*);
  Return (*ecc_errors)(Device, int type, int counter, unsigned long long*);
  Return (*field_values)(Device, int count, FieldValue*);
  Return (*processes)(Device, unsigned* count, ProcessInfo*);
  Return (*mps_processes)(Device, unsigned* count, ProcessInfo*);
  Return (*mig_mode)(Device, unsigned* current, unsigned* pending);
  Return (*max_mig_devices)(Device, unsigned*);
  Return (*mig_device)(Device, unsigned index, Device*);
  Return (*gpu_instance)(Device, unsigned*);
  Return (*compute_instance)(Device, unsigned*);
  Return (*event_set_create)(EventSet*);
  Return (*register_events)(Device, unsigned long long, EventSet);
  Return (*event_wait)(EventSet, EventData*, unsigned timeout_ms);
  Return (*gpm_support)(Device, GpmSupport*);
  Return (*gpm_alloc)(GpmSample*);
  Return (*gpm_sample)(Device, GpmSample);
  Return (*gpm_mig_sample)(Device, unsigned gpu_instance, GpmSample);
  Return (*gpm_metrics)(GpmMetricsGet*);
};

}  // namespace persia::agent::nvml
