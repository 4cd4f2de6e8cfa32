// Exit statuses: written by the thread that reaps children, read by the collector.
//
// Thread safety: any method, from any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/mutex.h"

namespace persia::agent {

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

}  // namespace persia::agent
