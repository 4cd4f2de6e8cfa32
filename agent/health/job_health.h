// The state of the job and of its workers: which of them run, hang, left or died, since when, and why the job is not well.
//
//   JobHealth health;
//   health.Look(processes, {.steady = ..., .wall = ..., ...});  // after each collection
//   std::shared_ptr<const HealthReport> report = health.report();
//   std::vector<JobEvent> events = health.TakeEvents();
//
// Each change is an event of type "persia.agent" and a line in the log: start, exit, death, hang, recovery and restart of a
// process; hang and recovery of the job; the end of the command. The ranks that run when the agent starts are one line in the
// log, and no event. Ends are reported from Moment::ends, each once, and not from the list of processes. A job that failed or
// finished stays so until a process starts. What an agent that starts again must know is kept:
//
//   health.Restore(former.memory(), now);                      // before the first Look
//
// Thread safety: none; used by the collector thread alone. A report does not change.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "health/death_recorder.h"
#include "health/deaths.h"
#include "health/hang_judge.h"
#include "health/health_memory.h"
#include "health/health_report.h"
#include "health/phrases.h"
#include "model/ends.h"
#include "model/events.h"
#include "model/process.h"

namespace persia::agent {

class JobHealth {
 public:
  using TimePoint = HealthReport::TimePoint;

  struct Moment {
    HangJudge::TimePoint steady{};
    TimePoint wall{};
    HangJudge::Settings settings{};
    // exec runs a command, and its exit code once it has ended.
    bool has_command = false;
    std::optional<int> exit_code = {};
    // When the command began: processes that ended before are of an earlier attempt. None: no command is run.
    std::optional<TimePoint> began = {};
    // The signal that asks the job to end, or by which it has ended.
    std::optional<Interruption> interruption = {};
    // Processes of this run have ended, even if none of them is listed any more.
    bool any_has_ended = false;
    // The processes that were found to have ended since the last Look, each once.
    std::span<const Process> ends = {};
    // How such a process ended, asked one Look after an end without a reason; null: no reason can become known later.
    std::function<std::string(const Process&)> exit_of = {};
    // Asked of processes that hang.
    StopCheck is_stopped = {};
  };

  // Adds to each what the HangJudge has found.
  void Look(std::span<Process> processes, const Moment& moment);

  // Of the last Look. Never null.
  [[nodiscard]] std::shared_ptr<const HealthReport> report() const { return report_; }
  [[nodiscard]] const HangJudge& judge() const { return judge_; }
  // Of the last Look. It changes rarely: when a hang begins or ends, and with a longer pause than any before.
  [[nodiscard]] const HealthMemory& memory() const { return memory_; }
  // The kernel's counts of kills for lack of memory, to be saved with the deaths. REQUIRES: before Look.
  void SetKills(const std::map<std::string, uint64_t>& kills) { recorder_.SetKills(kills); }
  // After the first Look, of a state that is read late, the deaths alone.
  void Restore(const HealthMemory& memory, TimePoint now);
  // Those since the last call.
  [[nodiscard]] std::vector<JobEvent> TakeEvents() { return std::exchange(events_, {}); }

 private:
  struct Known {
    ProcessId id = {};
    bool alive = false;
    std::optional<TimePoint> ended_at = {};
    HealthReport::Worker shown = {};
    std::vector<HangJudge::TimePoint> restarts = {};  // the last ones
    uint64_t first_look = 0;
    uint64_t look = 0;  // the last one with this process; 0: none
  };

  Known& Meet(const Process& process, const Moment& moment);
  void LookAt(const Process& process, const Moment& moment, HealthReport& report);
  void ReportEnds(std::span<const Process> processes, const Moment& moment);
  void ReportEnd(const Process& ended, const Moment& moment);
  [[nodiscard]] std::optional<std::chrono::seconds> HungFor(const Process& ended) const;
  // The process with its death; null: it is not known.
  [[nodiscard]] const Process* KnownDeathOf(const Process& process) const;
  [[nodiscard]] bool HasDied(const Process& process, const Moment& moment) const;
  [[nodiscard]] std::string EndTextOf(const Process& process) const;
  JobEvent& Report(LogLevel level, const Process& process, const char* name, const std::string& text,
                   const std::string& reason = "");
  // `signal`: that asked the job to end; empty: none did.
  void ReportCommand(int exit_code, const std::string& signal);
  [[nodiscard]] std::optional<HealthReport::Reason> HangOfJob(std::span<const Process> processes, const Moment& moment);
  void SumUp(std::span<const Process> processes, const Moment& moment, HealthReport& report);
  // `command_failed`: none: no command was run.
  void End(std::span<const Process> processes, std::optional<bool> command_failed, HealthReport& report);
  [[nodiscard]] std::vector<HealthReport::Reason> LastDeaths(std::span<const Process> processes,
                                                             const HealthReport& report) const;
  void Remember(std::span<const Process> processes, const HealthReport& report);

  HangJudge judge_;
  DeathRecorder recorder_;
  std::shared_ptr<const std::vector<Process>> deaths_ = std::make_shared<std::vector<Process>>();
  uint64_t shown_changes_ = 0;  // of the recorder, in deaths_
  std::map<WorkerKey, Known> known_;
  uint64_t looks_ = 0;
  TimePoint now_;
  bool job_hangs_ = false;
  TimePoint job_hangs_since_;                   // when a metric had changed last
  std::map<std::string, std::string> awaited_;  // by role, the rank that the others wait for in a hang of the job
  bool command_ended_ = false;
  bool interruption_is_told_ = false;
  HealthMemory memory_;
  std::vector<WorkerKey> remembered_hung_;
  std::shared_ptr<const HealthReport> report_ = std::make_shared<HealthReport>();
  std::vector<JobEvent> events_;
};

}  // namespace persia::agent
