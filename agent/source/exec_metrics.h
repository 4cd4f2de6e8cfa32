// What `exec` knows of its command, `persia_exec_*`, on the agent's own identity.
//
//   ExecRecord record;                                  // the command has just started
//   ExecMetrics metrics(agent_identity, record);
//   record.ChildEnded(pid, start_ticks, wait_status);   // each child that is buried
//   record.CommandEnded(3);
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "source/process_ends.h"
#include "source/source.h"

namespace persia::agent {

// Thread safety: any method, from any thread.
class ExecRecord {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // The command starts now.
  explicit ExecRecord(std::function<TimePoint()> now = std::chrono::steady_clock::now);

  void ChildEnded(uint32_t pid, uint64_t start_ticks, int wait_status) { ends_.Add(pid, start_ticks, wait_status); }
  void CommandEnded(int exit_code);

  struct State {
    double run_time_seconds = 0;
    std::optional<int> exit_code;
  };
  [[nodiscard]] State state() const;
  [[nodiscard]] const ProcessEnds& ends() const { return ends_; }

 private:
  const std::function<TimePoint()> now_;
  const TimePoint began_;
  ProcessEnds ends_;
  mutable std::mutex mutex_;
  TimePoint ended_;               // guarded by mutex_
  std::optional<int> exit_code_;  // guarded by mutex_; while it is there, so is ended_
};

// Thread safety: as Source.
class ExecMetrics : public Source {
 public:
  // REQUIRES: `record` outlives the source.
  ExecMetrics(Identity identity, const ExecRecord& record);

  // The exit code is shown once there is one. One layout for ever.
  Result<std::shared_ptr<const Snapshot>> Collect() override;

 private:
  const ExecRecord& record_;
  std::shared_ptr<const Layout> layout_;
};

}  // namespace persia::agent
