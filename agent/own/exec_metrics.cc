#include "own/exec_metrics.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace persia::agent {
namespace {

constexpr Rows::Family kAgentRestarts{"persia_agent_restarts_total", MetricType::kCounter,
                                      "How often the agent died and was started again while the command ran."};
constexpr Rows::Family kExitCode{"persia_exec_exit_code", MetricType::kGauge,
                                 "Exit code of the command, once it has ended; 128 + n if signal n ended it."};
constexpr Rows::Family kInterrupted{"persia_exec_interrupted", MetricType::kGauge,
                                    "1 if the command was asked to end by Ctrl-C or another process's signal, else 0."};
constexpr Rows::Family kRunTime{"persia_exec_run_time_seconds", MetricType::kGauge,
                                "How long the command has been running, or ran."};
constexpr Rows::Family kRunning{"persia_exec_running", MetricType::kGauge, "1 while the command is running, else 0."};

}  // namespace

ExecRecord::ExecRecord(const Record& record, std::function<TimePoint()> now) : record_(record), now_(std::move(now)) {}

void ExecRecord::Read() {
  const auto written = [this] { return __atomic_load_n(&record_.child_count, __ATOMIC_ACQUIRE); };
  const uint64_t count = written();
  for (uint64_t number = std::max(children_read_, count - std::min(count, Record::kMaxChildren)); number < count; ++number) {
    const supervisor::EndedChild& child = record_.children[number % Record::kMaxChildren];
    const uint32_t pid = __atomic_load_n(&child.pid, __ATOMIC_ACQUIRE);
    const int32_t wait_status = __atomic_load_n(&child.wait_status, __ATOMIC_ACQUIRE);
    const uint64_t start_ticks = __atomic_load_n(&child.start_ticks, __ATOMIC_ACQUIRE);
    if (number + Record::kMaxChildren > written()) ends_.Add(pid, start_ticks, wait_status);  // else overwritten
  }
  children_read_ = count;
}

std::optional<int> ExecRecord::CommandExitCode() const {
  const bool ended = __atomic_load_n(&record_.ended_ns, __ATOMIC_ACQUIRE) != 0;
  return ended ? std::optional<int>(record_.exit_code) : std::nullopt;
}

std::optional<Interruption> ExecRecord::interruption() const {
  const uint64_t until_ns = __atomic_load_n(&record_.shutdown_until_ns, __ATOMIC_ACQUIRE);
  if (until_ns == 0) return std::nullopt;
  const TimePoint until{std::chrono::nanoseconds(until_ns)};
  const TimePoint at = until - std::chrono::nanoseconds(supervisor::kShutdownNs);
  const int signal = static_cast<int>(record_.end_signal % supervisor::kFromTerminal);
  const auto exit_code = CommandExitCode();
  if ((exit_code ? ended_at() : now_()) > until) return std::nullopt;
  // A signal to all of its processes may end the command before the supervisor gets it. Others after the end are for the agent.
  if (exit_code && at > ended_at() && *exit_code != 128 + signal) return std::nullopt;
  return Interruption{.signal = ExitReason(signal),
                      .from_terminal = record_.end_signal >= supervisor::kFromTerminal,
                      .at = WallTimeOf(until_ns - supervisor::kShutdownNs)};
}

std::chrono::system_clock::time_point ExecRecord::WallTimeOf(uint64_t ns) const {
  const auto ago = now_() - TimePoint(std::chrono::nanoseconds(ns));
  return std::chrono::system_clock::now() - std::chrono::duration_cast<std::chrono::system_clock::duration>(ago);
}

uint64_t ExecRecord::began_ticks() const {
  static const auto kTicksPerSecond = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  return (record_.began_ns + uint64_t{1'000'000} * record_.suspended_ms) / (1'000'000'000 / kTicksPerSecond);
}

ExecRecord::State ExecRecord::state() const {
  State state{.exit_code = CommandExitCode()};
  const std::chrono::nanoseconds until =
      state.exit_code ? std::chrono::nanoseconds(record_.ended_ns) : now_().time_since_epoch();
  state.run_time_seconds = std::chrono::duration<double>(until - std::chrono::nanoseconds(record_.began_ns)).count();
  state.agent_restarts = std::max<uint64_t>(__atomic_load_n(&record_.agent_starts, __ATOMIC_RELAXED), 1) - 1;
  return state;
}

std::shared_ptr<const Snapshot> ExecMetrics::Collect() {
  const ExecRecord::State state = record_.state();
  rows_.On(identity_);
  rows_.Add(kAgentRestarts, static_cast<double>(state.agent_restarts));
  rows_.Add(kExitCode, state.exit_code ? *state.exit_code : kAbsentValue);
  rows_.Add(kInterrupted, record_.interruption() ? 1.0 : 0.0);
  rows_.Add(kRunTime, state.run_time_seconds);
  rows_.Add(kRunning, state.exit_code ? 0.0 : 1.0);
  return rows_.Take();
}

}  // namespace persia::agent
