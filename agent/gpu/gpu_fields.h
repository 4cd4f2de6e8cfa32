// The values of a GPU: one table for the reader, which fills them, and for the metrics, which expose them.
//
// docs/gpu.md has the same table, with the fields of NVIDIA's dcgm-exporter; a test compares them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/snapshot.h"

namespace persia::agent {

enum GpuField : uint8_t {
  kGpuClockMaxSm,
  kGpuClockMemory,
  kGpuClockSm,
  kGpuDecoder,
  kGpuDramActive,
  kGpuEccCorrected,
  kGpuEccUncorrected,
  kGpuEccLifetimeCorrected,
  kGpuEccLifetimeUncorrected,
  kGpuEncoder,
  kGpuEnergy,
  kGpuFp16Active,
  kGpuFp32Active,
  kGpuFp64Active,
  kGpuGraphicsActive,
  kGpuMemoryFree,
  kGpuMemoryReserved,
  kGpuMemoryTemperature,
  kGpuMemoryTotal,
  kGpuMemoryUsed,
  kGpuMemoryUtilization,
  kGpuNvlinkCrcData,
  kGpuNvlinkCrcFlit,
  kGpuNvlinkRecovery,
  kGpuNvlinkReplay,
  kGpuNvlinkReceived,
  kGpuNvlinkTransmitted,
  kGpuPcieReceived,
  kGpuPcieReplays,
  kGpuPcieTransmitted,
  kGpuPowerLimit,
  kGpuPower,
  kGpuRemappedCorrectable,
  kGpuRemappedUncorrectable,
  kGpuRetiredDoubleBit,
  kGpuRetiredSingleBit,
  kGpuRetiredPending,
  kGpuRemapFailed,
  kGpuRemapPending,
  kGpuSmActive,
  kGpuSmOccupancy,
  kGpuTemperature,
  kGpuTensorActive,
  kGpuThrottledApplicationClocks,
  kGpuThrottledHwPowerBrake,
  kGpuThrottledHwSlowdown,
  kGpuThrottledHwThermal,
  kGpuThrottledSwPowerCap,
  kGpuThrottledSwThermal,
  kGpuThrottledSyncBoost,
  kGpuUtilization,
  kGpuFields,
};

struct GpuFieldAbout {
  std::string_view family;
  MetricType type;
  std::string_view help;
  // A label besides `gpu`; empty: none.
  std::string_view label = {};
  std::string_view label_value = {};
};

// In the order of GpuField. Fields of one family stand together, and families are sorted by name.
extern const std::array<GpuFieldAbout, kGpuFields> kGpuFieldTable;

// Whether a value is possible: what comes from the driver may be anything.
bool IsGpuValue(GpuField field, double value);

}  // namespace persia::agent
