// Reads /proc.
//
//   ProcReader proc;
//   if (const auto stat = proc.Stat("4711"); stat && stat->start_ticks == expected) ...
//   proc.Read("4711", "/cgroup")                  // the methods of KernelFiles, with paths below /proc
//
// Buffers are kept between calls, so that reading about a thousand processes allocates nothing.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kernel/kernel_files.h"

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

  // By a signal (SIGSTOP, SIGTSTP) or a debugger.
  [[nodiscard]] bool IsStopped() const { return state == 'T' || state == 't'; }
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

// Soft limits. None: no limit, or not known.
struct ProcLimits {
  std::optional<uint64_t> cpu_seconds = {};
  std::optional<uint64_t> file_bytes = {};
  std::optional<uint64_t> open_files = {};
  std::optional<uint64_t> address_space = {};
};

class ProcReader : public KernelFiles {
 public:
  // `proc`: the mount point of the proc filesystem.
  explicit ProcReader(const std::string& proc = "/proc");

  // `who`: a pid, or "self". Null if the file cannot be read or parsed.
  std::optional<ProcStat> Stat(std::string_view who);
  std::optional<ProcMemory> Memory(std::string_view who);
  std::optional<uint64_t> OpenFds(std::string_view who);
  // For how long its main thread could run and waited for a processor, in seconds.
  std::optional<double> RunQueueWait(std::string_view who);
  // Needs the right to trace the process.
  std::optional<ProcIo> Io(std::string_view who);
  ProcLimits Limits(std::string_view who);
  // Whether it has a handler for this signal.
  bool Catches(std::string_view who, int signal);
  std::optional<uint64_t> PidNamespace(std::string_view who) { return Inode(who, "/ns/pid"); }
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
  std::string OtherThreadOf(std::string_view who);

 private:
  std::optional<uint64_t> CountFds(std::string_view who);

  bool size_is_count_ = false;     // of /proc/<pid>/fd
  bool counts_disk_wait_ = false;  // in /proc/<pid>/stat
  std::string_view stat_;          // the text of the last Stat, until the next Read
};

}  // namespace persia::agent
