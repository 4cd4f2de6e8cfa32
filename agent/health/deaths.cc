#include "health/deaths.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <utility>
#include <vector>

#include "health/phrases.h"
#include "model/ends.h"
#include "model/process.h"

namespace persia::agent {
namespace {

constexpr std::string_view kCrashes[] = {"SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE", "SIGSYS", "SIGTRAP"};

// "4.0 GiB"
std::string BytesText(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto shown = static_cast<double>(bytes);
  size_t unit = 0;
  for (; shown >= 1024 && unit + 1 < std::size(kUnits); ++unit) shown /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", shown, kUnits[unit]);
  return text;
}

// "it had 3.9 GiB in memory, 1.2 GiB a minute before"
std::string MemoryText(const Circumstances& about) {
  if (!about.resident) return "";
  std::string text = "it had " + BytesText(*about.resident) + " in memory";
  if (about.resident_before && *about.resident_before != *about.resident)
    text += ", up to a minute before " + BytesText(*about.resident_before);
  return text;
}

void Append(std::string& text, const std::string& part) {
  if (!part.empty()) text += (text.empty() ? "" : "; ") + part;
}

std::string InParentheses(const std::string& text) { return text.empty() ? "" : " (" + text + ")"; }

std::string KernelKill(const Circumstances& about) {
  std::string details;
  if (!about.memory_cgroup.empty()) {
    Append(details, "the limit of its cgroup " + about.memory_cgroup +
                        (about.memory_limit ? " is " + BytesText(*about.memory_limit) : " was reached"));
  } else if (about.memory_limit) {
    Append(details, "the limit of its cgroup is " + BytesText(*about.memory_limit));
  }
  Append(details, MemoryText(about));
  if (about.oom_score) Append(details, "its oom_score was " + std::to_string(*about.oom_score));
  return "killed by the kernel for lack of memory" + InParentheses(details);
}

bool IsFullOfFiles(const Circumstances& about) {
  return about.open_files && about.max_open_files && *about.open_files >= *about.max_open_files - *about.max_open_files / 50;
}

std::string FileLimitText(const Circumstances& about) {
  std::string details;
  if (about.open_files) Append(details, std::to_string(*about.open_files) + " were open");
  if (about.max_open_files) Append(details, "its limit is " + std::to_string(*about.max_open_files));
  return InParentheses(details);
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string ExceptionText(const UncaughtException& exception) {
  return exception.type + (exception.message.empty() ? "" : ": " + exception.message) + InParentheses(exception.where);
}

// Python exits with 1 after an uncaught exception, and torchelastic's `record` with other codes. If a signal ends the process
// instead, such as SIGABRT of a library that is torn down, the exception still is the reason.
std::optional<Death> ByException(const ProcessEnd& end) {
  if (!end.exception || end.exception->was_caught) return std::nullopt;
  const UncaughtException& exception = *end.exception;
  const std::string what = ExceptionText(exception) + (end.exit.starts_with("exit_") ? "" : ", then " + ExitText(end.exit));
  if (exception.type.ends_with("OutOfMemoryError") || exception.message.find("CUDA out of memory") != std::string::npos)
    return Death{DeathCause::kGpuOutOfMemory, what, "the batch size, and what else uses the GPU's memory."};
  if (exception.type.ends_with("MemoryError") || exception.error_number == ENOMEM) {
    std::string details;
    Append(details, MemoryText(end.about));
    if (end.about.max_address_space)
      Append(details, "its address space is limited to " + BytesText(*end.about.max_address_space));
    return Death{DeathCause::kOutOfMemory, what + InParentheses(details),
                 "what it allocates there, and its limits (ulimit -v, the cgroup's memory limit)."};
  }
  if (exception.error_number == ENOSPC || exception.error_number == EDQUOT)
    return Death{DeathCause::kDiskFull, what, "the free space of the filesystem that it writes to: df -h, df -i, quota."};
  if (exception.error_number == EMFILE || exception.error_number == ENFILE) {
    return Death{DeathCause::kLimit, what + FileLimitText(end.about),
                 "ulimit -n, and files or sockets that are not closed; torch.multiprocessing's sharing strategy."};
  }
  return Death{DeathCause::kException, what, "the traceback in the log of the process."};
}

Death BySignal(const ProcessEnd& end) {
  const std::string& exit = end.exit;
  const Circumstances& about = end.about;
  if (exit == "SIGBUS" && !about.full_filesystems.empty()) {
    return {DeathCause::kDiskFull, "SIGBUS, while " + Joined(about.full_filesystems) + " was full",
            "the size of " + Joined(about.full_filesystems) + " (docker run --shm-size), and what fills it."};
  }
  if (exit == "SIGXCPU") {
    const std::string limit = about.max_cpu_seconds ? "its limit is " + std::to_string(*about.max_cpu_seconds) + " s" : "";
    return {DeathCause::kLimit, "SIGXCPU: it used up its processor time" + InParentheses(limit), "ulimit -t."};
  }
  if (exit == "SIGXFSZ") {
    const std::string limit = about.max_file_bytes ? "its limit is " + BytesText(*about.max_file_bytes) : "";
    return {DeathCause::kLimit, "SIGXFSZ: a file became too large" + InParentheses(limit), "ulimit -f."};
  }
  if (std::ranges::find(kCrashes, exit) != std::end(kCrashes)) {
    const bool has_stacks = !about.stacks.empty();
    return {DeathCause::kCrash, exit,
            has_stacks ? "the stacks of its threads, below; then its core dump."
                       : "its core dump; with PERSIA_METRICS_STACKS=1 the next one leaves the stacks of its threads."};
  }
  if (exit == "SIGKILL" || exit == "exit_137") {
    std::string details = about.kills_are_known ? "the kernel has counted no kill for lack of memory" : "";
    Append(details, MemoryText(about));
    return {DeathCause::kKilled, ExitText(exit) + InParentheses(details),
            "the sender of SIGKILL: the launcher after its timeout, the scheduler (time limit, preemption), the kubelet, or a "
            "person."};
  }
  if (exit == "SIGTERM" || exit == "SIGINT" || exit == "exit_143" || exit == "exit_130") {
    return {DeathCause::kLauncher, ExitText(exit),
            "the rank that ended first: a launcher ends the others; else the scheduler."};
  }
  if (exit.starts_with("SIG") || exit.starts_with("signal_")) return {DeathCause::kSignal, exit, "the sender of " + exit + "."};
  if (exit == kUnknownEnd) {
    return {DeathCause::kUnknown, ExitText(exit),
            "the log of its launcher, which reaped it. Under `persia-metrics-agent exec`, or from Linux 6.15 on, the agent "
            "learns the signal."};
  }
  if (IsFullOfFiles(about)) {
    return {DeathCause::kLimit, ExitText(exit) + " with all its descriptors used" + FileLimitText(about),
            "ulimit -n, and files or sockets that are not closed."};
  }
  return {DeathCause::kExitCode, ExitText(exit), "the log of the process."};
}

// An exception that is not the reason, or perhaps not.
std::string AfterException(const ProcessEnd& end) {
  if (!end.exception) return "";
  return std::string(end.exception->was_caught ? "; its last exception, which did not end it, was "
                                               : "; before, it had left with ") +
         ExceptionText(*end.exception);
}

// The rank that the others waited for in the hang.
std::string AwaitedIn(const Process& ended) {
  const std::string& awaited = ended.end->awaited;
  if (awaited.empty()) return "the rank that the others waited for";
  return awaited == ProcessName(WorkerKeyOf(ended)) ? "why the others waited for it"
                                                    : awaited + ", which the others waited for";
}

bool WasEndedFromOutside(DeathCause cause) { return cause == DeathCause::kKilled || cause == DeathCause::kLauncher; }

}  // namespace

std::string_view Name(DeathCause cause) {
  switch (cause) {
    case DeathCause::kOutOfMemory:
      return "out_of_memory";
    case DeathCause::kGpuOutOfMemory:
      return "gpu_out_of_memory";
    case DeathCause::kDiskFull:
      return "disk_full";
    case DeathCause::kLimit:
      return "limit";
    case DeathCause::kCrash:
      return "crash";
    case DeathCause::kException:
      return "exception";
    case DeathCause::kExitCode:
      return "exit_code";
    case DeathCause::kHang:
      return "hang";
    case DeathCause::kKilled:
      return "killed";
    case DeathCause::kLauncher:
      return "launcher";
    case DeathCause::kSignal:
      return "signal";
    case DeathCause::kUnknown:
      return "unknown";
  }
  return "";
}

int Precedence(std::string_view exit) {
  if (exit == "SIGTERM" || exit == "SIGINT" || exit == "exit_143" || exit == "exit_130") return 2;
  return exit == kUnknownEnd ? 1 : 0;
}

bool IsDeath(std::string_view exit, uint32_t ordinal, bool killed_for_memory) {
  return !exit.empty() && !IsCleanExit(exit) && (ordinal == 0 || killed_for_memory || Precedence(exit) == 0);
}

bool IsConsequence(const Death& death, const Process& ended, const std::optional<Interruption>& interruption) {
  const ProcessEnd& end = *ended.end;
  using std::chrono::milliseconds;
  const bool raised = death.cause == DeathCause::kException;
  if (LabelValueOf(ended.identity, "role") == kLauncherRole && raised && end.exception->type.ends_with("ChildFailedError"))
    return true;
  // The collection that found the end may have begun shortly before the signal.
  constexpr milliseconds kCollection(100);
  if (!interruption || end.at + kCollection < interruption->at) return false;
  // Its time is in whole milliseconds. None: not known.
  if (raised && end.exception->raised_at != ProcessEnd::TimePoint())
    return end.exception->raised_at + milliseconds(1) >= interruption->at;
  constexpr DeathCause kByInterruption[] = {DeathCause::kLauncher,  DeathCause::kKilled, DeathCause::kExitCode,
                                            DeathCause::kException, DeathCause::kSignal, DeathCause::kUnknown};
  return std::ranges::find(kByInterruption, death.cause) != std::end(kByInterruption);
}

Death DeathOf(const Process& ended) {
  const ProcessEnd& end = *ended.end;
  const bool may_be_kernel = end.exit == "SIGKILL" || end.exit == "exit_137" || end.exit == kUnknownEnd;
  if (may_be_kernel && end.about.killed_for_memory) {
    return {DeathCause::kOutOfMemory, KernelKill(end.about) + AfterException(end),
            "what grew: caches, the prefetch and the number of data loaders, the batch; then the memory limit."};
  }
  if (auto death = ByException(end)) return *std::move(death);
  Death death = BySignal(end);
  if (!end.hung_for || !WasEndedFromOutside(death.cause)) {
    death.what += AfterException(end);
  } else {
    return {DeathCause::kHang,
            "it hung for " + DurationText(*end.hung_for) + ", then " + death.what + " ended it" + AfterException(end),
            end.about.stacks.empty() ? "the phase in which it hung, and " + AwaitedIn(ended) + "."
                                     : "the stacks of its threads, below."};
  }
  return death;
}

void SetDeath(Process& ended, Death death) {
  ProcessEnd& end = *ended.end;
  // One that another process may have ended lived on after its last sign, as long as it waited for the others.
  const bool ended_itself = death.cause != DeathCause::kLauncher && death.cause != DeathCause::kUnknown;
  if (end.last_sign && ended_itself) end.at = *end.last_sign;
  // It runs on for a moment, in which others may raise because its connections are closed.
  const bool has_raised = end.exception && !end.exception->was_caught && end.exception->raised_at != ProcessEnd::TimePoint();
  if (has_raised && ended_itself) end.at = end.exception->raised_at;
  // An exception leaves all phases on its way out.
  if (end.exception && !end.exception->was_caught && !end.exception->phase.empty()) ended.phase = end.exception->phase;
  end.death = std::move(death);
}

std::string PlaceOf(const Process& dead) {
  if (dead.phase.empty()) return "";
  return InPhase(dead.phase) + (dead.step ? ", step " + StepText(*dead.step) : "");
}

std::string SentenceOf(const Process& dead) {
  const std::string place = PlaceOf(dead);
  return dead.end->death->what + (place.empty() ? "" : "; " + place);
}

}  // namespace persia::agent
