#include "gpu/gpu_mask.h"

#include <algorithm>
#include <string>

#include "base/text.h"

namespace persia::agent {
namespace {

using Mask = std::optional<std::vector<size_t>>;

std::optional<std::string_view> Variable(std::string_view environment, std::string_view name) {
  while (!environment.empty()) {
    const std::string_view entry = environment.substr(0, environment.find('\0'));
    environment.remove_prefix(std::min(environment.size(), entry.size() + 1));
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  }
  return std::nullopt;
}

std::string_view Trim(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

// The device whose uuid begins with `text`, if it is the only one.
std::optional<size_t> FindUuid(std::string_view text, const std::vector<GpuDevice>& devices) {
  std::optional<size_t> found;
  for (size_t i = 0; i < devices.size(); ++i) {
    const GpuDevice& device = devices[i];
    // MIG-GPU-<uuid>/<GPU instance>/<compute instance>: the name before driver 470.
    const std::string old_name =
        "MIG-" + device.parent_uuid + "/" + std::to_string(device.gpu_instance) + "/" + std::to_string(device.compute_instance);
    const bool is_it = (device.IsMig() && text == old_name) || device.uuid.starts_with(text);
    if (is_it && found) return std::nullopt;
    if (is_it) found = i;
  }
  // Of a divided GPU, CUDA uses one MIG device; it is not known which.
  return found && devices[*found].is_divided ? std::nullopt : found;
}

// REQUIRES: CUDA numbers the devices as the driver does.
std::optional<size_t> FindIndex(std::string_view text, const std::vector<GpuDevice>& devices) {
  const bool has_mig =
      std::ranges::any_of(devices, [](const GpuDevice& device) { return device.is_divided || device.IsMig(); });
  if (has_mig) return std::nullopt;
  const auto found = std::ranges::find_if(devices, [&](const GpuDevice& device) { return device.gpu == text; });
  return found == devices.end() ? std::nullopt : std::optional(static_cast<size_t>(found - devices.begin()));
}

Mask Resolve(std::string_view list, const std::vector<GpuDevice>& devices, bool indexes_are_certain) {
  std::vector<size_t> mask;
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), entry.size() + 1));
    const std::string_view text = Trim(entry);
    std::optional<size_t> device;
    if (text.starts_with("GPU-") || text.starts_with("MIG-")) {
      constexpr size_t kPrefix = 4;
      if (text.size() > kPrefix) device = FindUuid(text, devices);
    } else if (!text.empty() && std::ranges::all_of(text, IsDigit)) {
      if (indexes_are_certain) device = FindIndex(text, devices);
    } else {
      break;  // CUDA ignores an invalid entry, such as -1 or NoDevFiles, and those after it
    }
    // If a device is listed twice, CUDA hides all devices.
    if (!device || std::ranges::find(mask, *device) != mask.end()) return std::nullopt;
    mask.push_back(*device);
  }
  return mask;
}

}  // namespace

Mask DevicesOfMask(std::string_view environment, const std::vector<GpuDevice>& devices, bool same_devices) {
  if (const auto cuda = Variable(environment, "CUDA_VISIBLE_DEVICES")) {
    const bool in_order = Variable(environment, "CUDA_DEVICE_ORDER") == "PCI_BUS_ID" || devices.size() == 1;
    return Resolve(*cuda, devices, same_devices && in_order);
  }
  const auto container = Variable(environment, "NVIDIA_VISIBLE_DEVICES");
  // Without a uuid, it means all devices, or those that the runtime chose in another way.
  if (!container || container->find('-') == std::string_view::npos) return std::nullopt;
  return Resolve(*container, devices, false);
}

}  // namespace persia::agent
