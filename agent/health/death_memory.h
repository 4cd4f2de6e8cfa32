// The deaths of a run, and what the next agent needs to report each of them once.
//
// The order of the fields here is that of the state (files/bytes.h). Another one, or another cause, needs a new version of the
// state (ledger/ledger.h). Thread safety: plain data.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "files/bytes.h"
#include "model/process.h"

namespace persia::agent {

struct DeathMemory {
  static constexpr size_t kMaxDeaths = 100;
  static constexpr size_t kMaxUntold = 4096;

  std::vector<Process> deaths = {};             // by their times, those of one collection and the next; at most kMaxDeaths
  std::vector<Process> untold = {};             // of whose ends the reason is not known yet
  std::array<uint64_t, kDeathCauses> totals{};  // all deaths of the run, by cause
  std::map<std::string, uint64_t> kills = {};   // the kernel's counts of kills for lack of memory, as far as reported

  friend bool operator==(const DeathMemory&, const DeathMemory&) = default;
};

// Its numbers are exact.
inline bool IsStep(const std::optional<double>& step) { return !step || (*step >= 0 && *step <= 0x1p53); }

template <class Archive>
void Fields(Archive& archive, Circumstances& about) {
  archive(about.killed_for_memory, about.kills_are_known, about.memory_cgroup, about.memory_limit, about.resident,
          about.resident_before, about.oom_score, about.full_filesystems, about.open_files, about.max_open_files,
          about.max_file_bytes, about.cpu_seconds, about.max_cpu_seconds, about.max_address_space, about.stderr_lines,
          about.stacks);
}

template <class Archive>
void Fields(Archive& archive, Death& death) {
  archive(death.cause, death.what, death.look_at);
  archive.Check(static_cast<size_t>(death.cause) < kDeathCauses);
}

template <class Archive>
void Fields(Archive& archive, UncaughtException& exception) {
  archive(exception.type, exception.message, exception.where, exception.phase, exception.error_number, exception.was_caught);
}

template <class Archive>
void Fields(Archive& archive, ProcessEnd& end) {
  archive(end.exit, end.at, end.hung_for, end.exception, end.last_events, end.about, end.death);
}

// What is kept of a process that has ended.
template <class Archive>
void Fields(Archive& archive, Process& ended) {
  archive(ended.id, ended.identity.job, ended.identity.labels, ended.ordinal, ended.birth_unix_ns, ended.phase, ended.step,
          ended.end);
  archive.Check(IsStep(ended.step) && ended.end);
}

template <class Archive>
void Fields(Archive& archive, DeathMemory& memory) {
  archive(memory.totals, memory.kills, memory.deaths, memory.untold);
  const auto is_dead = [](const Process& process) { return process.end && process.end->death; };
  archive.Check(memory.deaths.size() <= DeathMemory::kMaxDeaths && std::ranges::all_of(memory.deaths, is_dead));
}

}  // namespace persia::agent
