// The values of the job's ended processes, summed by instance (role, replica) and labels.
//
// The size depends on the limits on series, not on the number of processes:
//   - A group has at least one series. Only an instance's last group stays without one, with the instance's dropped counts.
//   - If no group has the labels of a process, its values are not added to another group, since increase() would treat moved
//     counts as new ones. Beyond the limits its series are refused and counted, and the exposed values do not change.
//   - The series of the instances that are not exposed have a separate limit, equal to that of all series. Beyond it, the
//     instances that ended first are forgotten, and their series counted as refused. No exposed count changes.
//
// Counters, histograms and events are summed exactly. The value of a process's gauge is kept for the time to live from the
// process's end, and is exposed only while no living process has set the gauge. The policies `sum`, `min`, `max` and `avg`
// combine the values of all ended processes; `last` and `each` use the value of the process that ended last.
//
//   RetiredProcesses retired({.gauge_ttl = 300s});
//   retired.Fold(input_of_an_ended_process, process, now);
//   std::vector<Measurements> inputs = retired.Inputs(now);     // to merge with those of the living processes
//
// ledger_records.h is the encoding. Thread safety: none; used by the collector thread alone.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exposure/series_limits.h"
#include "ledger/retired_group.h"
#include "merge/exact_sum.h"
#include "model/ends.h"
#include "model/process_id.h"
#include "segment/measurements.h"

namespace persia::agent {

// The time of one Collect: steady for timeouts, wall for the state.
struct CollectTime {
  uint64_t tick = 0;
  std::chrono::steady_clock::time_point steady{};
  std::chrono::system_clock::time_point wall{};
};

// Of the processes with one ordinal, the one that ended last, and how many have ended.
struct LastProcess {
  uint64_t ended = 0;
  ProcessId id = {};
  uint32_t restart_count = 0;
  std::chrono::system_clock::time_point last_change{};
};

// How it ended (model/ends.h), when it began to record, and when it was found to have ended.
struct LastEnd {
  LastProcess process = {};
  std::string exit = {};
  std::chrono::system_clock::time_point born{};
  std::chrono::system_clock::time_point ended{};
};

struct RetiredInstance {
  // When a process of it was last alive, or ended.
  std::chrono::steady_clock::time_point last_seen{};
  std::chrono::system_clock::time_point last_seen_wall{};
  std::map<uint32_t, LastEnd> last_ends = {};  // by ordinal
  std::map<std::string, uint64_t> exits = {};  // ended processes, by how they ended
};

// The part of the job that goes on.
struct LivingJob {
  // The command that is run has ended: nothing is missed any more, and what is exposed now stays exposed.
  bool is_over = false;
  // When the command that is run began, in clock ticks since boot, which do not step: processes with an earlier start belong to
  // a former attempt. None: no command is run.
  std::optional<uint64_t> began_ticks = {};
  // When the machine was booted, by the wall clock of now: processes that were born before belong to a former attempt, too.
  std::chrono::system_clock::time_point booted = {};
  // Since when the job is asked to end; none: it is not. Processes that end then are not missed.
  std::optional<std::chrono::system_clock::time_point> interrupted_at = {};
  std::set<RankId> instances = {};  // with a living process
  // The highest restart count of the living processes, by role. A launcher that restarts a worker group gives each process a
  // higher one.
  std::map<std::string, uint32_t> restart_counts = {};
};

class RetiredProcesses {
 public:
  struct Options {
    std::chrono::milliseconds gauge_ttl{300'000};
    // An instance without a living process for gauge_ttl is not exposed, unless one that died is missed. Its counts are kept,
    // within the limits.
    bool hide_ended = true;
    SeriesLimits limits{};
  };

  // Instances that are exposed because a process of them is missed; beyond it, those that ended last.
  static constexpr size_t kMaxMissed = 1000;
  // Beyond it, the instances that were alive least recently are forgotten.
  static constexpr size_t kMaxInstances = 10'000;

  explicit RetiredProcesses(Options options) : options_(std::move(options)) {}
  RetiredProcesses(RetiredProcesses&&) = default;
  RetiredProcesses& operator=(RetiredProcesses&&) = default;

  // The series that the limits leave out of a fold.
  struct FoldOutcome {
    bool group = true;                    // false: the process's labels have no group, and all its series are left out
    std::vector<uint32_t> left_out = {};  // numbers of series
  };

  // Adds the values of an ended process. `exit`: see model/ends.h. REQUIRES: not called for this process before.
  FoldOutcome Fold(const Measurements& ended, LastProcess process, const CollectTime& now, std::string_view exit = kUnknownEnd);
  // Replays a fold from the state: it leaves out the same series, even if the limits have changed.
  void RepeatFold(const Measurements& ended, LastProcess process, const CollectTime& now, const FoldOutcome& outcome,
                  std::string_view exit = kUnknownEnd);
  // How a process ended that was folded with kUnknownEnd. Null: its instance was forgotten.
  const RetiredInstance* SetExit(const ProcessPlace& place, const ProcessId& process, std::string_view exit);
  // Of this tick; before Fold and Inputs.
  void SetLiving(LivingJob living, const CollectTime& now);
  // A process of the instance is alive.
  void MarkSeen(const RankId& instance, const CollectTime& now);

  // The groups of the exposed instances. Valid until the next change. Removes expired values; to be called once a tick, after
  // the living instances were marked.
  [[nodiscard]] std::vector<Measurements> Inputs(const CollectTime& now);
  [[nodiscard]] const std::map<RankId, RetiredInstance>& instances() const { return instances_; }
  [[nodiscard]] bool IsShown(const RankId& instance, const CollectTime& now) const;
  // Whether the last process in this place died, and is missed. Only events end that: a replacement, the end of the
  // command, a launcher that has restarted the job's other processes without it. Only the first process of an instance is
  // missed: others, such as data loaders, come and go with it. REQUIRES: Inputs was called in this tick, and none in this
  // place is alive.
  [[nodiscard]] bool HasDied(const ProcessPlace& place) const;
  // Of the process in this place that ended last. Null: none has.
  [[nodiscard]] const LastEnd* LastEndOf(const ProcessPlace& place) const;
  // How many processes were folded.
  [[nodiscard]] uint64_t processes() const { return processes_; }
  // About the memory of all groups (retired_group.h).
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  // Series beyond the limits.
  [[nodiscard]] uint64_t series_refused() const { return series_refused_; }
  void SetOptions(Options options) { options_ = std::move(options); }
  [[nodiscard]] const Options& options() const { return options_; }

  // For the codec.
  [[nodiscard]] const std::list<RetiredGroup>& groups() const { return groups_; }
  RetiredGroup& FindOrAddGroup(const SegmentIdentity& identity);
  void Restore(const RankId& key, RetiredInstance instance) { instances_[key] = std::move(instance); }
  // Drops the sums of an instance.
  void ForgetInstance(const RankId& instance);
  // The instances that Inputs has dropped since the last call.
  [[nodiscard]] std::vector<RankId> TakeForgotten() { return std::exchange(forgotten_, {}); }
  void RestoreCount(uint64_t processes) { processes_ = processes; }

 private:
  // Whether a series is added: kIfKnown adds its values only if the group already has the series.
  enum class Admission { kAdd, kIfKnown, kLeaveOut };
  // `admit` returns the Admission of a series, by its number.
  template <class Admit>
  FoldOutcome FoldAll(const Measurements& ended, LastProcess process, std::string_view exit, const CollectTime& now,
                      bool has_group, Admit admit);
  // Returns the series that are left out.
  template <class Admit>
  std::vector<uint32_t> FoldAllSeries(RetiredGroup& group, const Measurements& ended, const CollectTime& now, Admit admit);
  // Whether the limits allow one more series of the instance.
  [[nodiscard]] bool MayAdd(const RankId& instance);
  // Some group of the instance, or the end.
  [[nodiscard]] std::map<std::string, std::list<RetiredGroup>::iterator>::iterator AnyGroup(const RankId& instance);
  void CountSeries(const CollectTime& now);
  // The time by which values and instances expire. It stands still once the job is over.
  [[nodiscard]] std::chrono::steady_clock::time_point ExpiryTime(const CollectTime& now) const {
    return over_since_ ? std::min(*over_since_, now.steady) : now.steady;
  }
  void FindMissed();
  void RemoveEmptyGroups();
  void ForgetEndedInstances(const CollectTime& now);
  // False: the series is left out.
  bool FoldSeries(RetiredGroup& group, uint32_t family, const Measurements& ended, size_t number, bool may_add,
                  const CollectTime& now);
  void FoldGauge(RetiredGroup& group, size_t series, const Measurements& ended, size_t number, const CollectTime& now);

  Options options_;
  LivingJob living_;
  std::optional<std::chrono::steady_clock::time_point> over_since_;
  // The highest restart count of the first processes of each role's instances, living or ended.
  std::map<std::string, uint32_t> restart_counts_;
  std::set<RankId> missed_;         // with a process that has died and is missed; at most kMaxMissed
  std::list<RetiredGroup> groups_;  // a list: the result of Inputs() points into them
  std::map<std::string, std::list<RetiredGroup>::iterator> by_key_;
  size_t next_number_ = 0;  // of a group
  std::map<RankId, RetiredInstance> instances_;
  uint64_t processes_ = 0;
  std::map<RankId, size_t> series_of_;
  size_t series_ = 0;   // of the exposed instances: hidden ones do not count against the limit
  uint64_t bytes_ = 0;  // of all groups
  std::optional<std::chrono::steady_clock::time_point> counted_at_;  // when series_ and series_of_ were counted
  uint64_t series_refused_ = 0;
  std::vector<RankId> forgotten_;
  std::optional<std::chrono::steady_clock::time_point> began_at_;  // the first call of Inputs
  // Members only to reuse their memory.
  std::vector<double> terms_;
  std::vector<double> sum_terms_;
  ExactSum sum_;
};

}  // namespace persia::agent
