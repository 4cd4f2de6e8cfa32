// A sample of all devices, and the messages by which the reader's process sends it to the agent.
//
// A message in the pipe: uint32 magic, uint32 size of the payload, payload. The payload: uint8 kind, then as EncodeGpuMessage
// writes it. The agent treats the pipe as hostile input, because the reader runs the driver's code, which may overwrite its
// memory.
//
// Thread safety: plain data, and pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "gpu/gpu_fields.h"
#include "gpu/nvml_abi.h"
#include "model/snapshot.h"

namespace persia::agent {

// A device, or a MIG device of one.
struct GpuDevice {
  // The label `gpu`: "3", or "3:1" of the MIG device with index 1. Names the device in all messages.
  std::string gpu;
  std::string uuid = {};  // empty: not known
  std::string model = {};
  std::string pci_bus_id = {};  // of a MIG device, that of its GPU
  // Of a MIG device.
  std::string parent_uuid = {};
  uint32_t gpu_instance = nvml::kNoInstance;
  uint32_t compute_instance = nvml::kNoInstance;

  bool is_divided = false;  // it has MIG devices
  bool is_lost = false;     // it does not answer any more
  // Processes with memory on the device, as the driver numbers them: in the initial pid namespace.
  std::vector<uint32_t> pids = {};
  std::array<double, kGpuFields> values = NoGpuValues();

  static std::array<double, kGpuFields> NoGpuValues() {
    std::array<double, kGpuFields> none;
    none.fill(kAbsentValue);
    return none;
  }
  [[nodiscard]] bool IsMig() const { return !parent_uuid.empty(); }
};

struct GpuSample {
  uint64_t boot_ns = 0;  // CLOCK_BOOTTIME
  std::string driver = {};
  std::vector<GpuDevice> devices = {};  // in the driver's order, MIG devices after their GPU
};

// An error that the driver reports about a device.
struct GpuXid {
  std::string gpu;
  uint64_t xid = 0;
  uint64_t unix_ms = 0;
};

// Why there is no sample: one line, without a line end.
struct GpuProblem {
  std::string text;
};

using GpuMessage = std::variant<GpuSample, GpuXid, GpuProblem>;

std::string EncodeGpuMessage(const GpuMessage& message);

// Takes messages from the bytes of a pipe.
//
//   messages.Add(bytes);
//   while (messages.Next(message).value()) ...
class GpuMessages {
 public:
  static constexpr size_t kMaxBytes = 1 << 20;  // of a message
  static constexpr size_t kMaxDevices = 256;
  static constexpr size_t kMaxPids = 4096;  // of a device
  static constexpr size_t kMaxTextBytes = 256;

  void Add(std::string_view bytes) { bytes_ += bytes; }
  // Whether there was a whole message. After an error, the rest of the bytes means nothing.
  Result<bool> Next(GpuMessage& message);

 private:
  std::string bytes_;
};

}  // namespace persia::agent
