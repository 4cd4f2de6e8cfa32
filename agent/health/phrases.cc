#include "health/phrases.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <ctime>
#include <functional>
#include <set>
#include <vector>

#include "health/rank.h"
#include "model/exit_reason.h"

namespace persia::agent {

std::string RankName(const Identity& identity) {
  return ProcessName({LabelValueOf(identity, "role"), LabelValueOf(identity, "instance"), "0"});
}

std::string ProcessName(const WorkerKey& key) {
  const auto& [role, instance, process] = key;
  return role + (role.empty() ? "" : " ") + instance + (process == "0" ? "" : ", process " + process);
}

std::string InPhase(std::string_view phase) { return phase == "other" ? "outside of its phases" : "in " + std::string(phase); }

std::string PhaseText(const Process& process) {
  const std::string step = process.step ? ", in step " + StepText(*process.step) : "";
  return InPhase(process.phase) + " for " + SecondsText(process.in_phase) + step;
}

std::string StepText(double step) { return std::to_string(static_cast<int64_t>(step)); }

std::string SecondsText(std::chrono::milliseconds duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(duration).count()) + " s";
}

std::string NumberText(double number) {
  std::array<char, 32> text{};
  const bool is_long = number >= 10 && number < 1e15;
  const auto format = is_long ? std::chars_format::fixed : std::chars_format::general;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number, format, is_long ? 0 : 2).ptr;
  return {text.data(), end};
}

std::string ExitText(std::string_view exit) {
  constexpr std::string_view kCode = "exit_";
  if (exit == kUnknownEnd) return "it ended by a signal or _exit";
  if (exit == kExitOfUnknownCode) return "a normal exit";
  return exit.starts_with(kCode) ? "exit code " + std::string(exit.substr(kCode.size())) : std::string(exit);
}

std::string AttemptText(const RunAttempt& attempt) {
  std::string text = "attempt " + std::to_string(attempt.number) + " of the run";
  const std::time_t seconds = attempt.run_began ? std::chrono::system_clock::to_time_t(*attempt.run_began) : 0;
  std::tm utc{};
  char time[64];
  const bool is_known = attempt.run_began && gmtime_r(&seconds, &utc) != nullptr;
  if (is_known && std::strftime(time, sizeof time, " that began at %Y-%m-%d %H:%M:%S UTC", &utc) > 0) text += time;
  return text;
}

std::string OthersWait(size_t count) { return count == 1 ? "1 other waits" : std::to_string(count) + " others wait"; }

std::string LookAtStacks(uint32_t pid) {
  return "its stacks: py-spy dump --pid " + std::to_string(pid) +
         "; with PERSIA_METRICS_STACKS=1 in its environment, they are an event.";
}

std::string WhomOthersAwait(std::span<const Process> processes, const std::optional<std::string>& role) {
  std::vector<const Process*> awaited;
  std::set<std::string> roles;  // that wait
  size_t waiting = 0;
  for (const Process& process : processes) {
    if (!process.alive || process.phase.empty()) continue;
    if (role && LabelValueOf(process.identity, "role") != *role) continue;
    if (process.phase == kSyncPhase) {
      ++waiting;
      roles.insert(LabelValueOf(process.identity, "role"));
    } else {
      awaited.push_back(&process);
    }
  }
  std::erase_if(awaited, [&](const Process* process) { return !roles.contains(LabelValueOf(process->identity, "role")); });
  if (waiting == 0 || awaited.empty()) return "";
  constexpr size_t kMost = 3;
  std::ranges::stable_sort(awaited, std::greater(), [](const Process* process) { return process->in_phase; });
  std::string text;
  for (size_t i = 0; i < std::min(awaited.size(), kMost); ++i)
    text += ProcessName(WorkerKeyOf(*awaited[i])) + " has been " + PhaseText(*awaited[i]) + "; ";
  if (awaited.size() > kMost) text += std::to_string(awaited.size() - kMost) + " more are not in sync; ";
  return text + (waiting == 1 ? "1 waits" : std::to_string(waiting) + " wait") + " in sync";
}

}  // namespace persia::agent
