// The exit statuses of processes that another process reaps, from their pidfds: PIDFD_GET_INFO returns them since Linux 6.15.
//
//   PidfdExits exits;
//   exits.Watch(pid, start_ticks);                 // while the process lives
//   std::optional<std::string> reason = exits.ReasonOf(pid, start_ticks);       // after its end
//   exits.Forget(pid, start_ticks);
//
// On an older kernel, and for processes beyond kMaxWatched, nothing is known. Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/owned_fd.h"
#include "kernel/proc_reader.h"

namespace persia::agent {

class PidfdExits {
 public:
  static constexpr size_t kMaxWatched = 512;  // a descriptor each

  // REQUIRES: the pid is of the agent's own namespace.
  void Watch(uint32_t pid, uint64_t start_ticks);
  // As in model/exit_reason.h; none: not known, or it is not reaped yet.
  [[nodiscard]] std::optional<std::string> ReasonOf(uint32_t pid, uint64_t start_ticks) const;
  // Whether its reason may become known.
  [[nodiscard]] bool IsWatched(uint32_t pid, uint64_t start_ticks) const { return watched_.contains({pid, start_ticks}); }
  void Forget(uint32_t pid, uint64_t start_ticks) { watched_.erase({pid, start_ticks}); }

 private:
  std::map<std::pair<uint32_t, uint64_t>, OwnedFd> watched_;
  bool is_known_to_fail_ = false;  // the kernel has no such call
  ProcReader proc_;
};

}  // namespace persia::agent
