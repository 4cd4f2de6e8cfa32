// Which devices a process may use, by its environment.
//
// Thread safety: a pure function.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "gpu/gpu_sample.h"

namespace persia::agent {

// As indexes into `devices`; nothing if that is not certain. `environment`: of /proc/PID/environ. `same_devices`: the process
// sees the devices that the agent sees, because it is in the same container.
//
// CUDA_VISIBLE_DEVICES decides, else NVIDIA_VISIBLE_DEVICES of the container. The uuid of a device or MIG device, or its unique
// beginning, is certain. An index is certain only in CUDA_VISIBLE_DEVICES, with `same_devices`, and if CUDA_DEVICE_ORDER is
// PCI_BUS_ID or there is only one device. Otherwise CUDA numbers the devices by their speed, and a container's runtime numbers
// those of the host.
std::optional<std::vector<size_t>> DevicesOfMask(std::string_view environment, const std::vector<GpuDevice>& devices,
                                                 bool same_devices);

}  // namespace persia::agent
