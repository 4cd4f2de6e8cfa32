// What one collection found about the job and its workers: their states, the reasons, and the deaths of the run.
//
// Thread safety: plain data.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "model/process.h"
#include "model/snapshot.h"

namespace persia::agent {

// The values of the labels role, instance and process.
using WorkerKey = std::tuple<std::string, std::string, std::string>;
[[nodiscard]] inline WorkerKey WorkerKeyOf(const Process& process) {
  return {LabelValueOf(process.identity, "role"), LabelValueOf(process.identity, "instance"), std::to_string(process.ordinal)};
}

// Whether the process of this place is a rank: the main one of its instance. Data loaders and launchers are none.
[[nodiscard]] inline bool IsRankPlace(const WorkerKey& key) {
  return std::get<2>(key) == "0" && std::get<0>(key) != kLauncherRole;
}

// kStarting: its metrics have not changed again yet, since a minute at most; kIdle: for longer.
enum class WorkerState { kStarting, kRunning, kIdle, kHung, kExited, kDied };
enum class JobState { kWaiting, kRunning, kDegraded, kHung, kFailed, kFinished };
// "running", "idle", ...
std::string_view Name(WorkerState state);
std::string_view Name(JobState state);

struct HealthReport {
  using TimePoint = std::chrono::system_clock::time_point;
  struct Worker {
    WorkerState state = WorkerState::kRunning;
    TimePoint since;
  };
  // Why the job is not well, or how it ended.
  struct Reason {
    std::string kind;  // "died", "hung", "job_hung", "restarting", "interrupted"; further ones: web/sentences.h
    std::string text;
    std::optional<WorkerKey> worker = {};
    std::optional<TimePoint> since = {};
  };

  JobState state = JobState::kWaiting;
  TimePoint since;
  std::chrono::milliseconds hang_after{0};  // 0: nothing is judged
  std::optional<int> exit_code = {};        // of exec's command
  std::string asked_to_end_by = {};         // a signal: "SIGINT"; empty: the job is, or was, not asked to end
  std::vector<Reason> reasons = {};         // the worst first; at most kMaxReasons
  std::map<WorkerKey, Worker> workers = {};
  std::shared_ptr<const std::vector<Process>> deaths = std::make_shared<std::vector<Process>>();  // never null

  static constexpr size_t kMaxReasons = 20;
};

[[nodiscard]] inline bool IsOver(const HealthReport& health) {
  return health.state == JobState::kFailed || health.state == JobState::kFinished;
}

}  // namespace persia::agent
