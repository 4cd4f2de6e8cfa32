// Metrics of the command that `exec` runs, `persia_exec_*`, on the agent's own identity, by the record of its supervisor.
//
//   ExecRecord record(mapped_record);
//   ExecMetrics metrics(agent_identity, record);
//   record.Read(); metrics.Collect();                  // in each collection
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "model/ends.h"
#include "model/rows.h"
#include "supervisor/shared_memory.h"
#include "workers/exits.h"

namespace persia::agent {

// Thread safety: CommandExitCode and interruption: any thread; the rest: the collector thread alone.
class ExecRecord {
 public:
  using Record = supervisor::Record;
  using TimePoint = std::chrono::steady_clock::time_point;

  // REQUIRES: `record` outlives this; the supervisor writes it meanwhile.
  explicit ExecRecord(const Record& record, std::function<TimePoint()> now = std::chrono::steady_clock::now);

  // Reads the entries that the supervisor has written since the last call.
  void Read();

  struct State {
    double run_time_seconds = 0;
    std::optional<int> exit_code;
    uint64_t agent_restarts = 0;
  };
  [[nodiscard]] State state() const;
  [[nodiscard]] supervisor::PipeState pipe() const { return static_cast<supervisor::PipeState>(record_.pipe); }
  // How processes ended, up to the last Read().
  [[nodiscard]] const ExitReasons& ends() const { return ends_; }
  // 128 + n if signal n ended the command; nothing while it runs.
  [[nodiscard]] std::optional<int> CommandExitCode() const;
  // The signal by which the job was asked to end, as long as it may still end because of it; of a command that has ended, if it
  // did so in that time.
  [[nodiscard]] std::optional<Interruption> interruption() const;
  // When the command began, in clock ticks since boot: each of its processes has at least these as its start time.
  [[nodiscard]] uint64_t began_ticks() const;
  // When the command began, by the wall clock of now.
  [[nodiscard]] std::chrono::system_clock::time_point began_at() const { return WallTimeOf(record_.began_ns); }
  // When the command ended. REQUIRES: CommandExitCode() has a value.
  [[nodiscard]] TimePoint ended_at() const { return TimePoint(std::chrono::nanoseconds(record_.ended_ns)); }

 private:
  [[nodiscard]] std::chrono::system_clock::time_point WallTimeOf(uint64_t ns) const;

  const Record& record_;
  const std::function<TimePoint()> now_;
  ExitReasons ends_;
  uint64_t children_read_ = 0;
};

// Thread safety: the collector thread alone.
class ExecMetrics {
 public:
  // REQUIRES: `record` outlives the source.
  ExecMetrics(Identity identity, const ExecRecord& record) : identity_(std::move(identity)), record_(record) {}

  // The exit code is absent while the command runs.
  std::shared_ptr<const Snapshot> Collect();

 private:
  const Identity identity_;
  const ExecRecord& record_;
  Rows rows_;
};

}  // namespace persia::agent
