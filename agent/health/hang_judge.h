// Decides which processes hang: those whose metrics stand still for much longer than is usual in this job.
//
//   HangJudge judge;
//   judge.Look(processes, steady_now, {.interval = 10s});     // after each collection
//   if (processes[2].verdict == HangVerdict::kHung) ...
//
// A process is judged once its metrics have changed kChangesToJudge times, at least kStartup apart, or a push interval if that
// is shorter: in many jobs only rank 0 records values after the start. It hangs if nothing changed for hang_after() although
// another process of the job has changed since, in half that time. The hang ends when the process's own metrics change, or the
// setting does. If nothing changes in the whole job, but for its launchers, the job hangs, and no further process of it is
// singled out: ranks that wait for each other stop together.
//
// job_unchanged() tells of a job that stops before any process is judged, in its first step, for example. The agent alone does
// not take that for a hang: maybe the ranks that record values run elsewhere. The alerts compare all agents of the job.
//
// hang_after() is a setting, or follows the job's rhythm: kPauses times the longest pause between two changes of any process
// in the last one to two days, within limits, and never less than one and a half times that pause. So a first evaluation of
// some minutes counts as a hang, and the next ones do not, even if they are hours apart. As long as no process is judged, it is
// at least kPauses times what the processes took until their first change.
//
// Time counts only while collections are made: an agent that was stopped, or starved, has seen no pause of its workers.
// Thread safety: none; used by the collector thread alone.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "health/health_memory.h"
#include "model/process.h"

namespace persia::agent {

class HangJudge {
 public:
  using Milliseconds = std::chrono::milliseconds;
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Settings {
    Milliseconds interval{10'000};                // of pushes: the longest time between two collections
    std::optional<Milliseconds> hang_after = {};  // none: by the job's rhythm. 0: nothing hangs
  };

  static constexpr uint64_t kChangesToJudge = 3;
  static constexpr Milliseconds kStartup{10'000};
  static constexpr int kPauses = 3;
  static constexpr Milliseconds kLeast{60'000};
  static constexpr Milliseconds kMost{1'800'000};
  // Of a pause that is longer than kMost; longer ones have been hangs themselves.
  static constexpr Milliseconds kMostOfPause{7'200'000};

  // Sets the verdict of each, for how long its metrics have not changed, and how often they have, as for kChangesToJudge.
  void Look(std::span<Process> processes, TimePoint now, const Settings& settings);

  // Processes run that were judged, and none of them has changed for hang_after().
  [[nodiscard]] bool job_hangs() const { return job_hangs_; }
  [[nodiscard]] Milliseconds hang_after() const { return hang_after_; }
  // For how long no metric of any running process has changed; none until the first change.
  [[nodiscard]] std::optional<Milliseconds> job_unchanged() const { return job_unchanged_; }
  [[nodiscard]] Milliseconds longest_pause() const { return std::max(longest_, longest_before_); }
  // What a former agent of the run knew. REQUIRES: before the first Look.
  void Restore(const HealthMemory& memory, HealthMemory::TimePoint now);

 private:
  using Key = std::pair<ProcessId, uint32_t>;  // with its number
  struct Track {
    uint64_t read = 0;           // the process's count of changes, at the last look
    uint64_t changes = 0;        // as for kChangesToJudge, with those that a former agent has seen
    Milliseconds counted_at{0};  // the last one of them, by seen_
    Milliseconds changed_at{0};  // by seen_
    Milliseconds began_at{0};    // by seen_
    Milliseconds startup{0};     // from then until the first change
    bool hangs = false;
    uint64_t look = 0;  // the last one with this process; 0: it is restored, or new
  };

  void UpdateTrack(const Process& process, Milliseconds interval, Track& track);
  // `startup`: the longest time that a process took until its first change, if none is judged yet, else 0.
  void SetHangAfter(const Settings& settings, Milliseconds startup);

  static constexpr Milliseconds kRhythmWindow = std::chrono::hours(24);

  std::map<Key, Track> tracks_;
  std::optional<TimePoint> last_look_;
  std::deque<Milliseconds> gaps_;        // between the last looks
  std::optional<Milliseconds> setting_;  // of the last Look
  Milliseconds seen_{0};                 // the time in which collections were made
  uint64_t looks_ = 0;
  // The longest pause between two changes, in this window and in the one before it.
  Milliseconds longest_{0};
  Milliseconds longest_before_{0};
  Milliseconds window_began_{0};
  Milliseconds hang_after_ = kLeast;
  bool job_hangs_ = false;
  std::optional<Milliseconds> job_unchanged_;
};

}  // namespace persia::agent
