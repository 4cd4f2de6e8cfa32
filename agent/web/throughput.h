// How fast the training is, how far, and when it ends.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "web/history.h"

namespace persia::agent {

// How fast the job trains: the rate of its progress counter now and in the last ten minutes, and its slowest rank.
//
// The progress counter is the first one whose name ends with one of these words, before `_total`: steps, batches, iterations,
// samples, examples, tokens. Thread safety: pure functions.
struct Throughput {
  // A running rank that is clearly slower than the others.
  struct Slowest {
    std::string role;
    std::string instance;
    double now = 0;     // per second
    double median = 0;  // of all running ranks with the counter
  };

  std::string name;     // of the family
  double now = 0;       // per second, of all ranks together, over the last kNow
  double last_10m = 0;  // the same over the last ten minutes, or the history if it is shorter
  std::optional<Slowest> slowest = {};
  std::map<std::pair<std::string, std::string>, double> ranks = {};  // per second, as `now`, by role and instance

  static constexpr int64_t kNowMs = 30'000;
  static constexpr int64_t kBeforeMs = 600'000;
  // Below this part of the median, a rank is slower than the others.
  static constexpr double kSlow = 0.8;
};

// By role and instance.
using RankValues = std::map<std::pair<std::string, std::string>, double>;

// The rates of a counter by rank, per second, over the last `span_ms`; empty if it was not collected twice.
[[nodiscard]] RankValues RatesOf(std::span<const History::Entry> history, const std::string& counter,
                                 int64_t span_ms = Throughput::kNowMs);
// The values of a gauge by rank; of several processes of a rank, the highest one.
[[nodiscard]] RankValues ValueByRank(const Snapshot& snapshot, const std::string& gauge);
// The ranks whose main process has ended.
[[nodiscard]] std::set<std::pair<std::string, std::string>> EndedRanks(const Snapshot& newest);

// Nothing: no counter of that kind, or fewer than two collections with it. `history`: the oldest first.
[[nodiscard]] std::optional<Throughput> ThroughputOf(std::span<const History::Entry> history);

// How far the training is, and when it ends: from the steps, samples and tokens that the job's processes count
// (persia/metrics/progress.h).
//
// Thread safety: functions of their arguments.

// What no process counts, or what is not known yet, is empty.
struct Progress {
  // Per second, over the last 30 seconds; of a job that is over, over its last ten minutes. The steps are those of the median
  // rank, since each rank counts each step of data-parallel training; samples and tokens are those of all ranks together.
  std::optional<double> steps_per_second = {};
  std::optional<double> samples_per_second = {};
  std::optional<double> tokens_per_second = {};
  // Of the rank that ends last: the number of its step, that of its last step, and the time until then at its present rate.
  std::optional<double> step = {};
  std::optional<double> planned_steps = {};
  std::optional<double> remaining_seconds = {};
};

// Without ranks that have ended, unless the job is over. Nothing: no process counts its progress. `history`: the oldest first.
[[nodiscard]] std::optional<Progress> ProgressOf(std::span<const History::Entry> history, bool is_over = false);

// Of a job that stands still: nothing is done per second now, although something was in the last 30 seconds.
void StandStill(std::optional<Progress>& progress, std::optional<Throughput>& throughput);

}  // namespace persia::agent
