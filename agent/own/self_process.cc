#include "own/self_process.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace persia::agent {
namespace {

constexpr Rows::Family kCpu{"process_cpu_seconds_total", MetricType::kCounter, "User and system processor time of the agent."};
constexpr Rows::Family kMaxFds{"process_max_fds", MetricType::kGauge, "Limit on open file descriptors of the agent."};
constexpr Rows::Family kOpenFds{"process_open_fds", MetricType::kGauge, "Open file descriptors of the agent."};
constexpr Rows::Family kResident{"process_resident_memory_bytes", MetricType::kGauge, "Resident memory of the agent."};
constexpr Rows::Family kStartTime{"process_start_time_seconds", MetricType::kGauge,
                                  "When the agent started, in seconds since 1970."};
constexpr Rows::Family kVirtual{"process_virtual_memory_bytes", MetricType::kGauge, "Virtual memory of the agent."};

}  // namespace

std::shared_ptr<const Snapshot> SelfProcess::Collect() {
  const auto stat = proc_.Stat("self");
  const auto memory = proc_.Memory("self");
  rows_.On(identity_);
  rows_.Add(kCpu, stat ? stat->cpu_seconds : kAbsentValue);
  rows_.Add(kMaxFds, proc_.Limits("self").open_files);
  rows_.Add(kOpenFds, proc_.OpenFds("self"));
  rows_.Add(kResident, memory ? memory->resident_bytes : kAbsentValue);
  rows_.Add(kStartTime, stat ? proc_.UnixTime(stat->start_ticks) : std::nullopt);
  rows_.Add(kVirtual, memory ? memory->virtual_bytes : kAbsentValue);
  return rows_.Take();
}

}  // namespace persia::agent
