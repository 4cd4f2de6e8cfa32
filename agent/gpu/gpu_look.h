// Reads all devices through the driver's library. It runs in the reader's process (gpu_reader.h).
//
//   GpuLook look(library);
//   Status good = look.Open();                       // loads no driver: an error if there is none
//   GpuSample sample = look.Sample();
//   std::optional<GpuXid> xid = look.WaitForXid(timeout);
//
// Calls may hang or crash. If the library lacks a function, or a device does not support it, the values are absent. Thread
// safety: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/gpu_sample.h"
#include "gpu/nvml_abi.h"

namespace persia::agent {

class GpuLook {
 public:
  // REQUIRES: `functions` are those of a loaded library.
  explicit GpuLook(const nvml::Functions& functions) : call_(functions) {}

  Status Open();
  GpuSample Sample();
  // Waits for an error of a device, for at most `timeout`.
  std::optional<GpuXid> WaitForXid(std::chrono::milliseconds timeout);

 private:
  // Two samples of GPM: its values are those of the time in between.
  struct GpmState {
    bool is_known = false;  // whether the device supports it
    nvml::GpmSample before = nullptr;
    nvml::GpmSample after = nullptr;
    bool has_before = false;
  };

  GpuDevice ReadDevice(unsigned index, nvml::Device device);
  void AddMigDevices(const GpuDevice& gpu, nvml::Device handle, std::vector<GpuDevice>& devices);
  void ReadTexts(nvml::Device handle, GpuDevice& device);
  void ReadUse(nvml::Device handle, GpuDevice& device);
  void ReadPower(nvml::Device handle, GpuDevice& device);
  void ReadErrors(nvml::Device handle, GpuDevice& device);
  void ReadFields(nvml::Device handle, GpuDevice& device);
  void ReadGpm(nvml::Device handle, GpuDevice& device);
  void ReadProcesses(nvml::Device handle, GpuDevice& device);
  void Watch(nvml::Device handle);
  // Whether the call succeeded. If its result says that the device is lost, marks the device as lost.
  bool Good(nvml::Return result, GpuDevice& device) const;
  static void Set(GpuDevice& device, GpuField field, double value);

  const nvml::Functions& call_;
  std::string driver_;
  nvml::EventSet events_ = nullptr;
  std::map<nvml::Device, std::string> watched_;  // by handle: the label `gpu`
  std::map<std::pair<std::string, uint32_t>, std::string> mig_by_instance_;
  std::map<std::string, GpmState> gpm_;  // by the label `gpu`
};

}  // namespace persia::agent
