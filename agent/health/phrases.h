// The phrases that the sentences about processes are made of: in reasons, log lines and events.
//
// Thread safety: pure functions.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "health/health_report.h"
#include "model/process.h"
#include "model/run_attempt.h"

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
// "94 s"
[[nodiscard]] std::string SecondsText(std::chrono::milliseconds duration);
// Two digits, or all before the point: "0.12", "118".
[[nodiscard]] std::string NumberText(double number);
// "exit code 3", "SIGKILL", "a normal exit". `exit`: as in model/exit_reason.h.
[[nodiscard]] std::string ExitText(std::string_view exit);
// "attempt 2 of the run that began at 2026-11-29 20:55:01 UTC"
[[nodiscard]] std::string AttemptText(const RunAttempt& attempt);
// "1 other waits", "3 others wait"
[[nodiscard]] std::string OthersWait(size_t count);

// Before the last sentence of a reason or a line: what tells more.
inline constexpr char kLookAt[] = ". Look at: ";
// What tells why a process hangs.
[[nodiscard]] std::string LookAtStacks(uint32_t pid);

// The ranks that the others wait for: those that are not in `sync` while others of their role are. Empty: the phases do not
// show them. `role`: of these ranks alone.
[[nodiscard]] std::string WhomOthersAwait(std::span<const Process> processes, const std::optional<std::string>& role = {});

}  // namespace persia::agent
