// The phrases that the sentences about processes are made of: in reasons, log lines and events.
//
// Thread safety: pure functions.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "health/health_report.h"
#include "model/ends.h"
#include "model/process.h"

namespace persia::agent {

// "trainer rep_3"
[[nodiscard]] std::string RankName(const Identity& identity);
// "trainer rep_3", or "trainer rep_3, process 2" of a further process of the rank.
[[nodiscard]] std::string ProcessName(const WorkerKey& key);
// "in data", "outside of its phases"
[[nodiscard]] std::string InPhase(std::string_view phase);
// "in data for 94 s, in step 812"
[[nodiscard]] std::string PhaseText(const Process& process);
// "812"
[[nodiscard]] std::string StepText(double step);
// "94 s", "1.5 s", "9.6 ms": two digits, or all before the point.
[[nodiscard]] std::string DurationText(std::chrono::duration<double> duration);
// Two digits, or all before the point: "0.12", "118".
[[nodiscard]] std::string NumberText(double number);
// "exit code 3", "SIGKILL", "a normal exit". `exit`: as in model/ends.h.
[[nodiscard]] std::string ExitText(std::string_view exit);
// "attempt 2 of the run that began at 2026-11-29 20:55:01 UTC"
[[nodiscard]] std::string AttemptText(const RunAttempt& attempt);
// "1 other waits", "3 others wait"
[[nodiscard]] std::string OthersWait(size_t count);

// Before the last sentence of a reason or a line: what tells more.
inline constexpr char kLookAt[] = ". Look at: ";
// What tells why a process hangs. A signal may have stopped it.
[[nodiscard]] std::string LookAtHang(uint32_t pid, bool is_stopped);

// The ranks that others of their role wait for in `sync`.
struct AwaitedRanks {
  std::vector<const Process*> dead;    // they died, and none has replaced them
  std::vector<const Process*> living;  // they are not in `sync`; the one that is longest in its phase first
  size_t waiting = 0;

  [[nodiscard]] bool empty() const { return dead.empty() && living.empty(); }
};
// Empty: the phases do not show them. `role`: of these ranks alone.
[[nodiscard]] AwaitedRanks WhomOthersAwait(std::span<const Process> processes, const std::optional<std::string>& role = {});
// "trainer rep_1 died; 3 others wait in sync for it"
[[nodiscard]] std::string SentenceOf(const AwaitedRanks& awaited);

// Whether a signal has stopped a living process; null: not known.
using StopCheck = std::function<bool(const Process&)>;
// With which a sentence about a process that hangs ends: where to look.
[[nodiscard]] std::string LookAtHangOf(const Process& process, const StopCheck& is_stopped);
// The same of a hang of the job. Empty: the deaths for which the others wait say where to look.
[[nodiscard]] std::string LookAtHangOfJob(std::span<const Process> processes, const AwaitedRanks& awaited,
                                          const StopCheck& is_stopped);

// "trainer rep_0, rep_1 and 2 more run already"; empty: no rank does.
[[nodiscard]] std::string WhichRunAlready(std::span<const Process> processes);

}  // namespace persia::agent
