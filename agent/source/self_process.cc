// /proc/self/limits has a line "Max open files  <soft>  <hard>  files".
#include "source/self_process.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

namespace persia::agent {
namespace {

// In the order of their names: a layout's families are sorted.
enum Place : size_t { kCpu, kMaxFds, kOpenFds, kResident, kStartTime, kVirtual, kPlaces };

struct About {
  const char* name;
  MetricType type;
  const char* help;
};
constexpr About kSelfFamilies[kPlaces] = {
    {"process_cpu_seconds_total", MetricType::kCounter, "Processor time of the agent, user and system."},
    {"process_max_fds", MetricType::kGauge, "File descriptors that the agent may have open."},
    {"process_open_fds", MetricType::kGauge, "File descriptors that the agent has open."},
    {"process_resident_memory_bytes", MetricType::kGauge, "Memory of the agent that is in RAM."},
    {"process_start_time_seconds", MetricType::kGauge, "When the agent started, in seconds since 1970."},
    {"process_virtual_memory_bytes", MetricType::kGauge, "Address space of the agent."},
};

// The soft limit.
double MaxFds(std::string_view limits) {
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
  for (const About& about : kSelfFamilies) {
    layout->families.push_back({.name = about.name,
                                .type = about.type,
                                .help = about.help,
                                .unit = "",
                                .bounds = {},
                                .series = {{.identity = 0, .first_value = layout->value_count++, .labels = {}}}});
  }
  layout_ = std::move(layout);
}

Result<std::shared_ptr<const Snapshot>> SelfProcess::Collect() {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->layout = layout_;
  snapshot->values.assign(kPlaces, kAbsentValue);
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
  values[kMaxFds] = MaxFds(proc_.Read("self/limits"));
  return std::shared_ptr<const Snapshot>(std::move(snapshot));
}

}  // namespace persia::agent
