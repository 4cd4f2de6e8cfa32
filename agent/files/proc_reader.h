// Reads /proc.
//
//   ProcReader proc;
//   if (const auto stat = proc.Stat("4711"); stat && stat->start_ticks == expected) ...
//
// Buffers are kept between calls, so that reading about a thousand processes allocates nothing.
// Thread safety: none.
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
  uint64_t start_ticks = 0;  // since boot; distinguishes processes with the same pid
  uint64_t minor_faults = 0;
  uint64_t major_faults = 0;                     // those that read from a disk
  std::optional<double> disk_wait_seconds = {};  // of its main thread; none: the kernel does not count it
  bool exits = false;                            // it has begun to exit, or is a zombie
  char state = 0;                                // 'R' running, 'S' sleeping, 'T' stopped by a signal, ...
};

// Of /proc/<pid>/statm. /proc/<pid>/stat has the same numbers, but since Linux 6.2 its resident pages omit the pending counts
// of each processor: up to a megabyte per processor.
struct ProcMemory {
  double virtual_bytes = 0;
  double resident_bytes = 0;
};

// Of /proc/<pid>/io: from and to disks.
struct ProcIo {
  uint64_t read_bytes = 0;
  uint64_t written_bytes = 0;
};

class ProcReader {
 public:
  // `proc`: the mount point of the proc filesystem.
  explicit ProcReader(std::filesystem::path proc = "/proc");

  // `who`: a pid, or "self". Null if the file cannot be read or parsed.
  std::optional<ProcStat> Stat(std::string_view who);
  std::optional<ProcMemory> Memory(std::string_view who);
  std::optional<uint64_t> OpenFds(std::string_view who);
  // For how long its main thread could run and waited for a processor, in seconds.
  std::optional<double> RunQueueWait(std::string_view who);
  // Needs the right to trace the process.
  std::optional<ProcIo> Io(std::string_view who);
  std::optional<uint64_t> PidNamespace(std::string_view who);
  // Whether the process `who` is in this pid namespace. The namespace of another user's process cannot be read: such a process
  // is taken to be in the reader's own. 0 is no namespace.
  bool IsInNamespace(std::string_view who, uint64_t pid_namespace);
  // The stat of a process that a segment names, by its members `pid`, `start_ticks` and `pid_namespace`. Null also if its pid
  // is that of another process.
  template <class Process>
  std::optional<ProcStat> StatOf(const Process& process) {
    const std::string pid = std::to_string(process.pid);
    if (!IsInNamespace(pid, process.pid_namespace)) return std::nullopt;
    std::optional<ProcStat> stat = Stat(pid);
    return stat && stat->start_ticks == process.start_ticks ? stat : std::nullopt;
  }
  // The wait status of a process that has ended and that its parent has not reaped. Null also if it cannot be told from 0.
  std::optional<int> WaitStatusOfZombie(std::string_view who, uint64_t start_ticks);
  // The start time of a process in seconds since 1970, by the current wall clock.
  std::optional<double> UnixTime(uint64_t start_ticks);

  // Once the main thread has ended, the memory and the files of a process are those of its other threads only: one of them, as
  // a name for Memory, OpenFds and Read. Empty: there is none.
  [[nodiscard]] std::string OtherThreadOf(std::string_view who) const;

  // A whole file below `proc`; empty if there is none. Valid until the next call.
  std::string_view Read(std::string_view name, std::string_view more = "");

 private:
  const char* PathOf(std::string_view name, std::string_view more);
  std::optional<uint64_t> CountFds(std::string_view who);

  const std::string proc_;
  bool size_is_count_ = false;     // of /proc/<pid>/fd
  bool counts_disk_wait_ = false;  // in /proc/<pid>/stat
  std::string path_;
  std::string buffer_;
  size_t stat_bytes_ = 0;  // of the last stat file, in the buffer
};

// The text after `label` on its line; empty if there is none.
std::string_view ProcLine(std::string_view text, std::string_view label);

}  // namespace persia::agent
