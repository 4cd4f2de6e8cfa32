// What the job's ended processes have measured, added up by instance (role, replica) and labels, so that it grows with the
// number of series and not with the number of processes.
//
// Counters, histograms and events are added exactly. Of gauges the values of those that ended last are kept, for a time to
// live: they show only where no living process has set them.
//
//   RetiredProcesses retired({.gauge_ttl = 300s});
//   retired.Fold(input_of_an_ended_process, place, moment);
//   std::vector<MergeInput> inputs = retired.Inputs(moment);     // for the merge, with those of the living
//
// retired_codec.h writes it down and reads it again. Not thread-safe: used by the collector thread alone.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "source/exact_sum.h"
#include "source/merge_input.h"
#include "source/merge_plan.h"
#include "source/retired_group.h"

namespace persia::agent {

// One collect, for what depends on time. Whatever waits looks at the steady clock; the wall clock is for what is written down.
struct Moment {
  uint64_t tick = 0;
  std::chrono::steady_clock::time_point steady{};
  std::chrono::system_clock::time_point wall{};
};

// Whose processes show together: (role, replica).
using InstanceKey = std::pair<std::string, int32_t>;

// The process that ended last on a place, and how many ended there.
struct RetiredPlace {
  uint64_t ended = 0;
  uint32_t pid = 0;
  uint64_t pid_namespace = 0;
  uint64_t start_ticks = 0;
  uint32_t restart_count = 0;
  std::chrono::system_clock::time_point last_change{};
};

struct RetiredInstance {
  // When a process of it was last seen, alive or ending.
  std::chrono::steady_clock::time_point last_seen{};
  std::chrono::system_clock::time_point last_seen_wall{};
  std::map<uint32_t, RetiredPlace> places = {};  // by ordinal
};

class RetiredProcesses {
 public:
  struct Options {
    std::chrono::milliseconds gauge_ttl{300'000};
    // An instance of which no process was seen for the time of gauge_ttl shows no more; its counts are kept.
    bool hide_left = true;
    SeriesLimits limits{};
  };

  explicit RetiredProcesses(Options options) : options_(std::move(options)) {}

  // Takes over what an ended process has measured. REQUIRES: not done for this process before.
  void Fold(const MergeInput& ended, RetiredPlace about, const Moment& now);
  // After the folds of a tick.
  void Compact();
  // A process of the instance lives.
  void Saw(const InstanceKey& instance, const Moment& now);

  // The groups of instances that show now. Good until the next change.
  [[nodiscard]] std::vector<MergeInput> Inputs(const Moment& now);
  [[nodiscard]] const std::map<InstanceKey, RetiredInstance>& instances() const { return instances_; }
  [[nodiscard]] bool Shown(const InstanceKey& instance, const Moment& now) const;
  // Processes that ended on that place.
  [[nodiscard]] uint64_t EndedOn(const InstanceKey& instance, uint32_t ordinal) const;
  // Processes that were folded, in all.
  [[nodiscard]] uint64_t processes() const { return processes_; }
  // Series for which there was no room.
  [[nodiscard]] uint64_t series_refused() const { return series_refused_; }
  void SetOptions(Options options) { options_ = std::move(options); }
  [[nodiscard]] const Options& options() const { return options_; }

  // For the codec.
  [[nodiscard]] const std::deque<RetiredGroup>& groups() const { return groups_; }
  RetiredGroup& TakeGroup(const SegmentIdentity& identity);
  void Restore(const InstanceKey& key, RetiredInstance instance) { instances_[key] = std::move(instance); }
  void RestoreCount(uint64_t processes) { processes_ = processes; }

 private:
  void FoldSeries(RetiredGroup& group, uint32_t family, const MergeInput& ended, size_t number, bool room, const Moment& now);
  void FoldGauge(RetiredGroup& group, size_t series, const MergeInput& ended, size_t number, const Moment& now);

  Options options_;
  std::deque<RetiredGroup> groups_;  // a deque: what Inputs() gave points into them
  std::map<std::string, size_t> group_numbers_;
  std::map<InstanceKey, RetiredInstance> instances_;
  uint64_t processes_ = 0;
  size_t series_ = 0;  // of the groups that show
  uint64_t series_refused_ = 0;
  // Kept for their memory.
  std::vector<double> terms_;
  std::vector<double> sum_terms_;
  ExactSum sum_;
};

}  // namespace persia::agent
