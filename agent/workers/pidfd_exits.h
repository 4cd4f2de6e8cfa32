// The exit statuses of processes that another process reaps, from their pidfds: PIDFD_GET_INFO returns them since Linux 6.15.
//
//   PidfdExits exits;
//   exits.Watch(process);                 // while it lives
//   std::optional<std::string> reason = exits.ReasonOf(process);       // after its end
//   exits.Forget(process);
//
// On an older kernel, and for processes beyond kMaxWatched, nothing is known. Thread safety: none.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "base/owned_fd.h"
#include "kernel/proc_reader.h"
#include "model/process_id.h"

namespace persia::agent {

class PidfdExits {
 public:
  static constexpr size_t kMaxWatched = 512;  // a descriptor each

  // REQUIRES: the pid is of the agent's own namespace.
  void Watch(const ProcessId& process);
  // As in model/exit_reason.h; none: not known, or it is not reaped yet.
  [[nodiscard]] std::optional<std::string> ReasonOf(const ProcessId& process) const;
  // Whether its reason may become known.
  [[nodiscard]] bool IsWatched(const ProcessId& process) const { return watched_.contains(process); }
  void Forget(const ProcessId& process) { watched_.erase(process); }

 private:
  std::map<ProcessId, OwnedFd> watched_;
  bool is_known_to_fail_ = false;  // the kernel has no such call
  ProcReader proc_;
};

}  // namespace persia::agent
