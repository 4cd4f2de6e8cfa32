#include "app/worker_watch.h"

#include <chrono>
#include <string>
#include <utility>

namespace persia::agent {
namespace {

// After this many collections, and at least this time, without a worker, the log names the directory in which workers are
// expected. A program imports for seconds before it records a metric.
constexpr uint64_t kTicksUntilHint = 3;
constexpr std::chrono::seconds kTimeUntilHint(20);

}  // namespace

void WorkerWatch::Look(const SegmentSourceStats& stats, Clock::TimePoint now) {
  began_ = began_.value_or(now);
  if (stats.live + stats.dead + stats.retired > 0) {
    const auto waited = std::chrono::duration_cast<std::chrono::seconds>(now - *began_);
    if (!std::exchange(workers_seen_, true) && is_told_)
      LogInfo("workers.none", "the first worker has started, after " + std::to_string(waited.count()) + " s");
  } else if (options_.expects_workers && !is_told_ && ++ticks_without_workers_ >= kTicksUntilHint &&
             now - *began_ >= kTimeUntilHint) {
    is_told_ = true;
    LogWarning("workers.none", "no worker's metrics are in " + options_.directory +
                                   " yet; a worker that is not started by exec needs the same job name (PERSIA_JOB_NAME), or "
                                   "PERSIA_METRICS_DIR=" +
                                   options_.directory + ", in its environment");
  }
  if (stats.live > 0 || !workers_seen_) {
    idle_since_.reset();
    return;
  }
  idle_since_ = idle_since_.value_or(now);
  if (options_.idle_limit && !idle_reported_ && now - *idle_since_ >= *options_.idle_limit) {
    idle_reported_ = true;
    options_.on_idle();
  }
}

}  // namespace persia::agent
