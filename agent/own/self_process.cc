// /proc/self/limits has a line "Max open files  <soft>  <hard>  files".
#include "own/self_process.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace persia::agent {
namespace {

// In the order of their names: a layout's families are sorted.
enum ValueIndex : size_t { kCpu, kMaxFds, kOpenFds, kResident, kStartTime, kVirtual, kValues };

struct FamilyDescription {
  const char* name;
  MetricType type;
  const char* help;
};
constexpr FamilyDescription kProcessFamilies[kValues] = {
    {"process_cpu_seconds_total", MetricType::kCounter, "User and system processor time of the agent."},
    {"process_max_fds", MetricType::kGauge, "Limit on open file descriptors of the agent."},
    {"process_open_fds", MetricType::kGauge, "Open file descriptors of the agent."},
    {"process_resident_memory_bytes", MetricType::kGauge, "Resident memory of the agent."},
    {"process_start_time_seconds", MetricType::kGauge, "When the agent started, in seconds since 1970."},
    {"process_virtual_memory_bytes", MetricType::kGauge, "Virtual memory of the agent."},
};

double SoftMaxFds(std::string_view limits) {
  std::string_view words = ProcLine(limits, "Max open files");
  words.remove_prefix(std::min(words.find_first_not_of(' '), words.size()));
  double number = kAbsentValue;
  std::from_chars(words.data(), words.data() + words.size(), number);
  return number;
}

}  // namespace

SelfProcess::SelfProcess(Identity identity, std::filesystem::path proc) : proc_(std::move(proc)) {
  auto layout = std::make_shared<Layout>();
  layout->identities.push_back(std::move(identity));
  for (const FamilyDescription& family : kProcessFamilies) {
    layout->families.push_back({.name = family.name,
                                .type = family.type,
                                .help = family.help,
                                .unit = "",
                                .bounds = {},
                                .series = {{.identity = 0, .first_value = layout->value_count++, .labels = {}}}});
  }
  layout_ = std::move(layout);
}

std::shared_ptr<const Snapshot> SelfProcess::Collect() {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->layout = layout_;
  snapshot->values.assign(kValues, kAbsentValue);
  snapshot->collected_at = std::chrono::system_clock::now();
  std::vector<double>& values = snapshot->values;

  if (const auto stat = proc_.Stat("self")) {
    values[kCpu] = stat->cpu_seconds;
    values[kStartTime] = proc_.UnixTime(stat->start_ticks).value_or(kAbsentValue);
  }
  if (const auto memory = proc_.Memory("self")) {
    values[kVirtual] = memory->virtual_bytes;
    values[kResident] = memory->resident_bytes;
  }
  if (const auto open_fds = proc_.OpenFds("self")) {
    values[kOpenFds] = static_cast<double>(*open_fds);
  }
  values[kMaxFds] = SoftMaxFds(proc_.Read("self/limits"));
  return snapshot;
}

}  // namespace persia::agent
