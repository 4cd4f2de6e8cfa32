// What the kernel tells about processes, in /proc.
//
//   ProcReader proc;
//   if (const auto stat = proc.Stat("4711"); stat && stat->start_ticks == expected) ...
//
// Buffers are kept from call to call: looking at a thousand processes allocates nothing.
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace persia::agent {

// Of /proc/<pid>/stat.
struct ProcStat {
  double cpu_seconds = 0;  // user and system, of all its threads
  uint64_t threads = 0;
  uint64_t start_ticks = 0;  // after boot; tells a pid's owners apart
};

// Of /proc/<pid>/statm. /proc/<pid>/stat has the same numbers, but since Linux 6.2 its resident pages leave out what each
// processor has not told of yet: up to a megabyte and more for each of many.
struct ProcMemory {
  double virtual_bytes = 0;
  double resident_bytes = 0;
};

class ProcReader {
 public:
  // `proc` is where the proc filesystem is mounted.
  explicit ProcReader(std::filesystem::path proc = "/proc");

  // `who`: a pid, or "self". What cannot be read, or is not as expected, is nothing.
  std::optional<ProcStat> Stat(std::string_view who);
  std::optional<ProcMemory> Memory(std::string_view who);
  std::optional<uint64_t> OpenFds(std::string_view who);
  std::optional<uint64_t> PidNamespace(std::string_view who);
  // When a process started, in seconds since 1970, as the wall clock stands now.
  std::optional<double> UnixTime(uint64_t start_ticks);

  // A whole file below `proc`; empty if there is none. Good until the next call.
  std::string_view Read(std::string_view name, std::string_view more = "");

 private:
  const char* PathOf(std::string_view name, std::string_view more);

  const std::string proc_;
  bool size_is_count_ = false;  // of /proc/<pid>/fd
  std::string path_;
  std::string buffer_;
};

// The text after `label` on its line; empty if there is none.
std::string_view ProcLine(std::string_view text, std::string_view label);

}  // namespace persia::agent
