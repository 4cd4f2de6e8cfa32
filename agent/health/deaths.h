// Why a process of the job died: the cause, a sentence about it, and advice.
//
//   const Death death = DeathOf(end);
//   death.cause                          // a label's value: "out_of_memory"
//   SentenceOf(death)                    // "trainer rep_3 died: killed by the kernel for lack of memory (...); in data, step
//   812"
//
// docs/deaths.md describes the causes. Thread safety: pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/interruption.h"
#include "model/process_end.h"

namespace persia::agent {

enum class DeathCause {
  kOutOfMemory,     // the kernel killed it for lack of memory, or an allocation failed
  kGpuOutOfMemory,  // an allocation on the GPU failed
  kDiskFull,        // SIGBUS while a filesystem in memory was full, or ENOSPC
  kLimit,           // of processor time, file size or open files
  kCrash,           // SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE, SIGSYS, SIGTRAP
  kException,       // of Python, which nothing caught
  kExitCode,        // another exit code than 0
  kHang,            // it hung, and was then ended by a signal
  kKilled,          // SIGKILL from elsewhere
  kLauncher,        // SIGTERM or SIGINT, without one to the job: its launcher ended it, or a person
  kSignal,          // another signal
  kUnknown,         // a signal or _exit; it is not known which
};
inline constexpr size_t kDeathCauses = static_cast<size_t>(DeathCause::kUnknown) + 1;
// "out_of_memory", ...
[[nodiscard]] std::string_view Name(DeathCause cause);

struct Death {
  using TimePoint = std::chrono::system_clock::time_point;

  std::string role = {};
  std::string instance = {};
  std::string process = {};
  uint32_t pid = 0;
  uint64_t start_ticks = 0;
  DeathCause cause = DeathCause::kUnknown;
  std::string exit = {};     // model/exit_reason.h
  std::string what = {};     // "killed by the kernel for lack of memory (...)"
  std::string look_at = {};  // what to look at; a sentence
  std::string phase = {};    // empty: it marked none
  std::optional<double> step = {};
  TimePoint began = {};
  TimePoint ended_at = {};  // the last sign of its life or, without one, when it was found to have ended
  std::vector<std::string> last_events = {};
  std::string stacks = {};
  Circumstances about = {};  // without the stacks

  friend bool operator==(const Death&, const Death&) = default;
};

// REQUIRES: end.exit is not empty.
[[nodiscard]] Death DeathOf(const ProcessEnd& end);

// "in data, step 812"; empty: the process marked no phases.
[[nodiscard]] std::string PlaceOf(const Death& death);
// "killed by the kernel ...; in data, step 812", to follow "trainer rep_3 died: ".
[[nodiscard]] std::string SentenceOf(const Death& death);

// Of deaths at one time, those of a lower precedence come first: a launcher ends the other ranks once one has died.
[[nodiscard]] int Precedence(std::string_view exit);

// Whether an end is a death. Further processes of a rank, such as data loaders, may end by _exit as they should, unless the
// kernel killed them, or by the SIGTERM with which the rank ends those of a pool.
[[nodiscard]] bool IsDeath(std::string_view exit, uint32_t ordinal, bool killed_for_memory = false);

// Whether the death only follows from what is told elsewhere: the job was asked to end, or the ranks of a launcher have failed.
// The kernel's kill for lack of memory, a crash, a full disk or a hang remain deaths.
[[nodiscard]] bool IsConsequence(const Death& death, const ProcessEnd& end, const std::optional<Interruption>& interruption);

}  // namespace persia::agent
