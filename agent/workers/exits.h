// How processes of the job ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/owned_fd.h"
#include "kernel/proc_reader.h"
#include "model/process_id.h"
#include "segment/segment_reader.h"

namespace persia::agent {

// Exit statuses: written by the thread that reaps children, read by the collector.
//
// Thread safety: any method, from any thread.

// "exit_0", "exit_3", "SIGKILL"; `wait_status` as of waitpid(2).
std::string ExitReason(int wait_status);

class ExitReasons {
 public:
  // The start time distinguishes a process from others with the same pid. Beyond kMaxProcesses, the oldest entry is removed.
  void Add(uint32_t pid, uint64_t start_ticks, int wait_status);
  [[nodiscard]] std::optional<std::string> ReasonOf(uint32_t pid, uint64_t start_ticks) const;

  static constexpr size_t kMaxProcesses = 4096;

 private:
  using Key = std::pair<uint32_t, uint64_t>;

  mutable Mutex mutex_;
  std::map<Key, std::string> reasons_ PERSIA_GUARDED_BY(mutex_);
  std::deque<Key> order_ PERSIA_GUARDED_BY(mutex_);  // oldest first
};

// The exit statuses of processes that another process reaps, from their pidfds: PIDFD_GET_INFO returns them since Linux 6.15.
//
//   PidfdExits exits;
//   exits.Watch(process);                 // while it lives
//   std::optional<std::string> reason = exits.ReasonOf(process);       // after its end
//   exits.Forget(process);
//
// On an older kernel, and for processes beyond kMaxWatched, nothing is known. Thread safety: none.
class PidfdExits {
 public:
  static constexpr size_t kMaxWatched = 512;  // a descriptor each

  // REQUIRES: the pid is of the agent's own namespace.
  void Watch(const ProcessId& process);
  // As in model/ends.h; none: not known, or it is not reaped yet.
  [[nodiscard]] std::optional<std::string> ReasonOf(const ProcessId& process) const;
  // Whether its reason may become known.
  [[nodiscard]] bool IsWatched(const ProcessId& process) const { return watched_.contains(process); }
  void Forget(const ProcessId& process) { watched_.erase(process); }

 private:
  std::map<ProcessId, OwnedFd> watched_;
  bool is_known_to_fail_ = false;  // the kernel has no such call
  ProcReader proc_;
};

// How a process of the job ended: by the wait status that the supervisor reaped, its pidfd, the mark that it left in its
// segment, or its zombie.
//
// Thread safety: the collector thread alone.
class ExitLookup {
 public:
  // `reaped`: of the supervisor, or null. It outlives this.
  explicit ExitLookup(const ExitReasons* reaped = nullptr);

  // Prepares for the end of a living process.
  void Watch(const SegmentReader& living);
  // Whether the process lives, although it has unlocked its segment. False: also if this is not known.
  bool Lives(const SegmentReader& unlocked);
  // As in model/ends.h; nothing: not known, or not known yet. REQUIRES: the segment was read after its writer had ended.
  std::optional<std::string> ReasonOf(const SegmentReader& ended);
  // False: it lives, is a zombie, or nothing is known about it.
  [[nodiscard]] bool IsReaped(const SegmentReader& reader) const;
  // Later, only the supervisor and the kernel may still report it.
  [[nodiscard]] std::optional<std::string> ReasonOf(const ProcessId& ended) const;
  [[nodiscard]] bool MayLearnMore(const ProcessId& ended) const;
  // Nothing is asked about it any more.
  void Forget(const ProcessId& ended) { pidfds_.Forget(ended); }

 private:
  [[nodiscard]] bool HasPidHere(const ProcessId& process) const;

  const ExitReasons* reaped_;
  PidfdExits pidfds_;
  ProcReader proc_;
  std::optional<uint64_t> own_namespace_;
};

}  // namespace persia::agent
