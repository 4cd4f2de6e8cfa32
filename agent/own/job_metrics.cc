#include "own/job_metrics.h"

#include <sys/statvfs.h>

#include <utility>

namespace persia::agent {
namespace {

// In the order of their names: a layout's families are sorted.
constexpr const char* kJobFamilies[][2] = {
    {"persia_agent_metrics_dir_free_bytes", "Free space of the filesystem with the workers' segments."},
    {"persia_agent_metrics_dir_size_bytes", "Size of the filesystem with the workers' segments."},
    {"persia_agent_push_interval_seconds", "Time between two collections, and between two pushes."},
    {"persia_job_hang_after_seconds",
     "A process hangs if its metrics have not changed for this time, while others of its job did. Absent if nothing is "
     "judged."},
    {"persia_job_hung",
     "1 if no metric of any running process of this agent has changed for persia_job_hang_after_seconds, else 0. Processes "
     "whose metrics have hardly changed since their start do not count."},
};

double InSeconds(std::chrono::duration<double> duration) { return duration.count(); }

}  // namespace

JobMetrics::JobMetrics(Identity identity, std::string directory) : directory_(std::move(directory)) {
  auto layout = std::make_shared<Layout>();
  layout->identities.push_back(std::move(identity));
  for (const auto& [name, help] : kJobFamilies) {
    layout->families.push_back({.name = name,
                                .type = MetricType::kGauge,
                                .help = help,
                                .unit = "",
                                .bounds = {},
                                .series = {{.identity = 0, .first_value = layout->value_count++, .labels = {}}}});
  }
  layout_ = std::move(layout);
}

std::shared_ptr<const Snapshot> JobMetrics::Collect(const Values& values) {
  struct statvfs space {};
  const bool known = statvfs(directory_.c_str(), &space) == 0;
  const auto bytes = [&](fsblkcnt_t blocks) {
    return known ? static_cast<double>(blocks) * static_cast<double>(space.f_frsize) : kAbsentValue;
  };
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->layout = layout_;
  snapshot->collected_at = std::chrono::system_clock::now();
  snapshot->values = {bytes(space.f_bavail), bytes(space.f_blocks), InSeconds(values.push_interval),
                      values.hang_after.count() > 0 ? InSeconds(values.hang_after) : kAbsentValue, values.hangs ? 1.0 : 0.0};
  return snapshot;
}

}  // namespace persia::agent
