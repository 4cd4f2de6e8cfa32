#include "own/job_metrics.h"

#include <sys/statvfs.h>

#include <string_view>
#include <utility>

namespace persia::agent {
namespace {

constexpr const char* kThroughput = "persia_job_throughput";

// In the order of their names: a layout's families are sorted.
constexpr const char* kJobFamilies[][2] = {
    {"persia_agent_metrics_dir_free_bytes", "Free space of the filesystem with the workers' segments."},
    {"persia_agent_metrics_dir_size_bytes", "Size of the filesystem with the workers' segments."},
    {"persia_agent_push_interval_seconds", "Time between two pushes."},
    {"persia_job_hang_after_seconds",
     "A process hangs if its metrics have not changed for this time, while others of its job did. Absent if nothing is "
     "judged."},
    {"persia_job_hung",
     "1 if no metric of any running process of this agent has changed for persia_job_hang_after_seconds, else 0. Processes "
     "whose metrics have hardly changed since their start do not count."},
    {kThroughput,
     "How fast the job makes progress: the rate of its counter of steps, batches or samples over 30 seconds, per "
     "second, of all ranks of this agent."},
    {"persia_job_unchanged_seconds",
     "For how long no metric of any running process of this agent has changed. Absent until the first change."},
};

double InSeconds(std::chrono::duration<double> duration) { return duration.count(); }

}  // namespace

JobMetrics::JobMetrics(Identity identity, std::string directory)
    : identity_(std::move(identity)), directory_(std::move(directory)) {
  MakeLayout("");
}

void JobMetrics::MakeLayout(const std::string& counter) {
  counter_ = counter;
  auto layout = std::make_shared<Layout>();
  layout->identities.push_back(identity_);
  for (const auto& [name, help] : kJobFamilies) {
    const bool has_counter = name == std::string_view(kThroughput);
    if (has_counter && counter.empty()) continue;
    layout->families.push_back({.name = name,
                                .type = MetricType::kGauge,
                                .help = help,
                                .unit = "",
                                .bounds = {},
                                .series = {{.identity = 0,
                                            .first_value = layout->value_count++,
                                            .labels = has_counter ? Labels{{"counter", counter}} : Labels()}}});
  }
  layout_ = std::move(layout);
}

std::shared_ptr<const Snapshot> JobMetrics::Collect(const Values& values) {
  struct statvfs space {};
  const bool known = statvfs(directory_.c_str(), &space) == 0;
  const auto bytes = [&](fsblkcnt_t blocks) {
    return known ? static_cast<double>(blocks) * static_cast<double>(space.f_frsize) : kAbsentValue;
  };
  // The family stays once there was a counter: a layout that changes costs a new plan of all series.
  if (values.throughput && values.throughput->first != counter_) MakeLayout(values.throughput->first);
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->layout = layout_;
  snapshot->collected_at = std::chrono::system_clock::now();
  snapshot->values = {bytes(space.f_bavail), bytes(space.f_blocks), InSeconds(values.push_interval),
                      values.hang_after.count() > 0 ? InSeconds(values.hang_after) : kAbsentValue, values.hangs ? 1.0 : 0.0};
  if (!counter_.empty()) snapshot->values.push_back(values.throughput ? values.throughput->second : kAbsentValue);
  snapshot->values.push_back(values.unchanged ? InSeconds(*values.unchanged) : kAbsentValue);
  return snapshot;
}

}  // namespace persia::agent
