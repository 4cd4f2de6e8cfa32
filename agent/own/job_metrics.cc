#include "own/job_metrics.h"

#include <sys/statvfs.h>

namespace persia::agent {
namespace {

constexpr Rows::Family kFreeBytes{"persia_agent_metrics_dir_free_bytes", MetricType::kGauge,
                                  "Free space of the filesystem with the workers' segments."};
constexpr Rows::Family kSizeBytes{"persia_agent_metrics_dir_size_bytes", MetricType::kGauge,
                                  "Size of the filesystem with the workers' segments."};
constexpr Rows::Family kPushInterval{"persia_agent_push_interval_seconds", MetricType::kGauge, "Time between two pushes."};
constexpr Rows::Family kHangAfter{
    "persia_job_hang_after_seconds", MetricType::kGauge,
    "A process hangs if its metrics have not changed for this time, while others of its job did. Absent if nothing is judged."};
constexpr Rows::Family kJobHung{
    "persia_job_hung", MetricType::kGauge,
    "1 if no metric of any running process of this agent has changed for persia_job_hang_after_seconds, else 0. Processes "
    "whose metrics have hardly changed since their start do not count."};
constexpr Rows::Family kThroughput{
    "persia_job_throughput", MetricType::kGauge,
    "How fast the job makes progress: the rate of its counter of steps, batches or samples over 30 seconds, per "
    "second, of all ranks of this agent."};
constexpr Rows::Family kUnchanged{
    "persia_job_unchanged_seconds", MetricType::kGauge,
    "For how long no metric of any running process of this agent has changed. Absent until the first change."};

double InSeconds(std::chrono::duration<double> duration) { return duration.count(); }

}  // namespace

std::shared_ptr<const Snapshot> JobMetrics::Collect(const Values& values) {
  struct statvfs space {};
  const bool known = statvfs(directory_.c_str(), &space) == 0;
  const auto bytes = [&](fsblkcnt_t blocks) {
    return known ? static_cast<double>(blocks) * static_cast<double>(space.f_frsize) : kAbsentValue;
  };
  rows_.On(identity_);
  rows_.Add(kFreeBytes, bytes(space.f_bavail));
  rows_.Add(kSizeBytes, bytes(space.f_blocks));
  rows_.Add(kPushInterval, InSeconds(values.push_interval));
  rows_.Add(kHangAfter, values.hang_after.count() > 0 ? InSeconds(values.hang_after) : kAbsentValue);
  rows_.Add(kJobHung, values.hangs ? 1.0 : 0.0);
  rows_.Add(kUnchanged, values.unchanged ? InSeconds(*values.unchanged) : kAbsentValue);
  if (values.throughput) counter_ = values.throughput->first;
  if (!counter_.empty())
    rows_.Add(kThroughput, values.throughput ? values.throughput->second : kAbsentValue, {{"counter", counter_}});
  return rows_.Take();
}

}  // namespace persia::agent
