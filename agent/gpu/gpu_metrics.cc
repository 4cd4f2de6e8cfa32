// The values of a snapshot: the two of the reader, then of each device a 1 (info), up, and its fields; then the counts of
// errors.
#include "gpu/gpu_metrics.h"

#include <algorithm>
#include <chrono>

#include "model/layout_builder.h"

namespace persia::agent {
namespace {

constexpr LayoutBuilder::Family kRestarts{
    "persia_agent_gpu_reader_restarts_total", MetricType::kCounter,
    "How often the process that reads the GPUs ended, hung or could not read them, and was started again."};
constexpr LayoutBuilder::Family kReaderUp{"persia_agent_gpu_reader_up", MetricType::kGauge,
                                          "1 if the process that reads the GPUs works, else 0."};
constexpr LayoutBuilder::Family kInfo{"persia_gpu_info", MetricType::kGauge, "1. The labels describe the device."};
constexpr LayoutBuilder::Family kUp{"persia_gpu_up", MetricType::kGauge,
                                    "1 if the device answers, 0 if it is lost: fallen off the bus."};
constexpr LayoutBuilder::Family kXidErrors{
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
  Shape shape{.has_reader = values.has_reader, .devices = devices_, .xids = {}};
  for (const auto& [key, count] : values.xids) shape.xids.push_back(key);
  if (layout_ == nullptr || shape != shape_) {
    shape_ = std::move(shape);
    MakeLayout();
  }
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->layout = layout_;
  snapshot->collected_at = std::chrono::system_clock::now();
  std::vector<double>& all = snapshot->values;
  all.reserve(layout_->value_count);
  if (values.has_reader) {
    all.push_back(static_cast<double>(values.restarts));
    all.push_back(values.runs ? 1 : 0);
  }
  for (size_t i = 0; i < devices_.size(); ++i) {
    const GpuDevice* const device = values.sample == nullptr ? nullptr : &values.sample->devices[i];
    all.push_back(1);
    all.push_back(device == nullptr ? kAbsentValue : device->is_lost ? 0 : 1);
    for (size_t field = 0; field < kGpuFields; ++field) {
      if (devices_[i].fields[field]) all.push_back(device == nullptr ? kAbsentValue : device->values[field]);
    }
  }
  for (const auto& [key, count] : values.xids) all.push_back(static_cast<double>(count));
  return snapshot;
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

void GpuMetrics::MakeLayout() {
  LayoutBuilder builder;
  if (shape_.has_reader) {
    builder.Add(agent_, kRestarts);
    builder.Add(agent_, kReaderUp);
  }
  for (const Device& device : shape_.devices) {
    builder.Add(device.owner, kInfo, device.info);
    builder.Add(device.owner, kUp, {{"gpu", device.gpu}});
    for (size_t field = 0; field < kGpuFields; ++field) {
      if (!device.fields[field]) continue;
      const GpuFieldAbout& about = kGpuFieldTable[field];
      Labels labels{{"gpu", device.gpu}};
      if (!about.label.empty()) labels.emplace_back(about.label, about.label_value);
      builder.Add(device.owner, {about.family, about.type, about.help}, std::move(labels));
    }
  }
  for (const GpuXidKey& key : shape_.xids) {
    builder.Add(key.identity, kXidErrors,
                {{"class", std::string(XidClass(key.xid))}, {"gpu", key.gpu}, {"xid", std::to_string(key.xid)}});
  }
  layout_ = std::move(builder).Build();
}

}  // namespace persia::agent
