#include "gpu/gpu_metrics.h"

#include <algorithm>
#include <string_view>

namespace persia::agent {
namespace {

constexpr Rows::Family kRestarts{
    "persia_agent_gpu_reader_restarts_total", MetricType::kCounter,
    "How often the process that reads the GPUs ended, hung or could not read them, and was started again."};
constexpr Rows::Family kReaderUp{"persia_agent_gpu_reader_up", MetricType::kGauge,
                                 "1 if the process that reads the GPUs works, else 0."};
constexpr Rows::Family kInfo{"persia_gpu_info", MetricType::kGauge, "1. The labels describe the device."};
constexpr Rows::Family kUp{"persia_gpu_up", MetricType::kGauge,
                           "1 if the device answers, 0 if it is lost: fallen off the bus."};
constexpr Rows::Family kXidErrors{
    "persia_gpu_xid_errors_total", MetricType::kCounter,
    "Errors that the driver reported about the device in this run, by XID, and by what they mean."};

Labels InfoOf(const GpuDevice& device, const std::string& driver) {
  Labels labels{{"gpu", device.gpu}};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) labels.emplace_back(name, value);
  };
  add("driver_version", driver);
  add("model", device.model);
  add("parent_uuid", device.parent_uuid);
  add("pci_bus_id", device.pci_bus_id);
  add("uuid", device.uuid);
  return labels;
}

}  // namespace

Identity WithoutRank(Identity agent) {
  for (auto& [name, value] : agent.labels) {
    if (name != "instance") continue;
    const std::string replica = value.substr(std::min(value.rfind('_'), value.size() - 1) + 1);
    value = kNoRank + (replica == "0" ? "" : "_" + replica);
  }
  return agent;
}

std::shared_ptr<const Snapshot> GpuMetrics::Collect(const Values& values) {
  if (!values.has_reader) devices_.clear();
  if (values.sample != nullptr) UpdateDevices(values);
  if (values.has_reader) {
    rows_.On(agent_);
    rows_.Add(kRestarts, static_cast<double>(values.restarts));
    rows_.Add(kReaderUp, values.runs ? 1.0 : 0.0);
  }
  for (size_t i = 0; i < devices_.size(); ++i) {
    const Device& device = devices_[i];
    const GpuDevice* const now = values.sample == nullptr ? nullptr : &values.sample->devices[i];
    rows_.On(device.owner);
    rows_.Add(kInfo, 1.0, device.info);
    rows_.Add(kUp, now == nullptr ? kAbsentValue : now->is_lost ? 0 : 1, {{"gpu", device.gpu}});
    for (size_t field = 0; field < kGpuFields; ++field) {
      if (!device.fields[field]) continue;
      const GpuFieldAbout& about = kGpuFieldTable[field];
      const double value = now == nullptr ? kAbsentValue : now->values[field];
      const Rows::Family family{about.family, about.type, about.help};
      if (about.label.empty())
        rows_.Add(family, value, {{"gpu", device.gpu}});
      else
        rows_.Add(family, value, {{"gpu", device.gpu}, {about.label, about.label_value}});
    }
  }
  for (const auto& [key, count] : values.xids) {
    rows_.On(key.identity);
    rows_.Add(kXidErrors, static_cast<double>(count),
              {{"class", XidClass(key.xid)}, {"gpu", key.gpu}, {"xid", std::to_string(key.xid)}});
  }
  return rows_.Take();
}

// A device that does not answer for a moment keeps its texts and fields, because a changed layout costs a new plan of all
// series.
void GpuMetrics::UpdateDevices(const Values& values) {
  std::vector<Device> devices;
  for (size_t i = 0; i < values.sample->devices.size(); ++i) {
    const GpuDevice& from = values.sample->devices[i];
    Device device{.owner = values.owners[i], .gpu = from.gpu, .info = InfoOf(from, values.sample->driver), .fields = {}};
    for (size_t field = 0; field < kGpuFields; ++field) device.fields[field] = !IsAbsent(from.values[field]);
    const auto before = std::ranges::find(devices_, device.gpu, &Device::gpu);
    if (before != devices_.end() && (from.is_lost || before->info == device.info)) {
      device.info = before->info;
      device.fields |= before->fields;
    }
    devices.push_back(std::move(device));
  }
  devices_ = std::move(devices);
}

}  // namespace persia::agent
