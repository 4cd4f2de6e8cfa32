#include "health/phrases.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "health/rank.h"
#include "model/ends.h"

namespace persia::agent {
namespace {

std::string StacksCommand(uint32_t pid) {
  const std::string number = std::to_string(pid);
  return "py-spy dump --pid " + number + " (Python) or gdb -p " + number + ".";
}

std::vector<const Process*> LivingRanks(std::span<const Process> processes) {
  std::vector<const Process*> ranks;
  for (const Process& process : processes)
    if (process.alive && IsRankPlace(WorkerKeyOf(process))) ranks.push_back(&process);
  return ranks;
}

}  // namespace

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
  return InPhase(process.phase) + " for " + DurationText(process.in_phase) + step;
}

std::string StepText(double step) { return std::to_string(static_cast<int64_t>(step)); }

std::string DurationText(std::chrono::duration<double> duration) {
  const double seconds = duration.count();
  constexpr double kRoundedToASecond = 0.9995;
  const bool is_short = seconds > 0 && seconds < kRoundedToASecond;
  return is_short ? NumberText(1000 * seconds) + " ms" : NumberText(seconds) + " s";
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

std::string LookAtHang(uint32_t pid, bool is_stopped) {
  return is_stopped ? "the sender of the signal; kill -CONT " + std::to_string(pid) + " lets it go on."
                    : "its stacks: " + StacksCommand(pid);
}

AwaitedRanks WhomOthersAwait(std::span<const Process> processes, const std::optional<std::string>& role) {
  AwaitedRanks found;
  std::set<std::string> roles;  // that wait
  for (const Process& process : processes) {
    const std::string own_role = LabelValueOf(process.identity, "role");
    if (role && own_role != *role) continue;
    if (process.alive && process.phase == kSyncPhase) {
      ++found.waiting;
      roles.insert(own_role);
    } else if (process.alive && !process.phase.empty()) {
      found.living.push_back(&process);
    } else if (process.died && IsRankPlace(WorkerKeyOf(process))) {
      found.dead.push_back(&process);
    }
  }
  const auto is_of_other = [&](const Process* process) { return !roles.contains(LabelValueOf(process->identity, "role")); };
  std::erase_if(found.dead, is_of_other);
  std::erase_if(found.living, is_of_other);
  std::ranges::stable_sort(found.living, std::greater(), [](const Process* process) { return process->in_phase; });
  return found;
}

std::string SentenceOf(const AwaitedRanks& awaited) {
  if (awaited.empty()) return "";
  constexpr size_t kMost = 3;
  std::string text;
  const auto append = [&](const std::vector<const Process*>& ranks, const std::string& of_more) {
    for (size_t i = 0; i < std::min(ranks.size(), kMost); ++i)
      text += ProcessName(WorkerKeyOf(*ranks[i])) + (ranks[i]->alive ? " has been " + PhaseText(*ranks[i]) : " died") + "; ";
    if (ranks.size() > kMost) text += std::to_string(ranks.size() - kMost) + of_more + "; ";
  };
  append(awaited.dead, " more died");
  append(awaited.living, " more are not in sync");
  if (awaited.living.empty())
    return text + OthersWait(awaited.waiting) + " in sync for " + (awaited.dead.size() == 1 ? "it" : "them");
  return text + (awaited.waiting == 1 ? "1 waits" : std::to_string(awaited.waiting) + " wait") + " in sync";
}

std::string LookAtHangOf(const Process& process, const StopCheck& is_stopped) {
  const bool stopped = is_stopped && is_stopped(process);
  return (stopped ? "; it is stopped by a signal" : "") + std::string(kLookAt) + LookAtHang(process.id.pid, stopped);
}

std::string LookAtHangOfJob(std::span<const Process> processes, const AwaitedRanks& awaited, const StopCheck& is_stopped) {
  const std::vector<const Process*> ranks = awaited.empty() ? LivingRanks(processes) : awaited.living;
  if (ranks.empty()) return "";
  const auto stopped = std::ranges::find_if(ranks, [&](const Process* rank) { return is_stopped && is_stopped(*rank); });
  const Process& named = stopped == ranks.end() ? *ranks.front() : **stopped;
  const std::string name = ProcessName(WorkerKeyOf(named));
  if (stopped != ranks.end()) return kLookAt + name + ", which is stopped: " + LookAtHang(named.id.pid, true);
  return kLookAt + std::string(awaited.empty() ? "the stacks of each rank, for " : "the stacks of ") + name + ": " +
         StacksCommand(named.id.pid);
}

std::string WhichRunAlready(std::span<const Process> processes) {
  constexpr size_t kNamed = 2;
  const std::vector<const Process*> living = LivingRanks(processes);
  std::map<std::string, std::vector<std::string>> roles;
  for (const Process* rank : living)
    roles[LabelValueOf(rank->identity, "role")].push_back(LabelValueOf(rank->identity, "instance"));
  std::string text;
  for (const auto& [role, ranks] : roles) {
    text += (text.empty() ? "" : "; ") + role + " " + ranks[0];
    if (ranks.size() > 1) text += (ranks.size() == kNamed ? " and " : ", ") + ranks[1];
    if (ranks.size() > kNamed) text += " and " + std::to_string(ranks.size() - kNamed) + " more";
  }
  return text + (living.empty() ? "" : living.size() == 1 ? " runs already" : " run already");
}

}  // namespace persia::agent
