// How processes ended, as their parent saw it: written by whoever buries children, read by the collector.
//
// Thread safety: any method, from any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace persia::agent {

// "exit_0", "exit_3", "SIGKILL", from a status as waitpid(2) gives it.
std::string ExitReason(int wait_status);

class ProcessEnds {
 public:
  // A pid comes back; with its start time it does not. Beyond kMost the oldest are forgotten.
  void Add(uint32_t pid, uint64_t start_ticks, int wait_status);
  [[nodiscard]] std::optional<std::string> ReasonOf(uint32_t pid, uint64_t start_ticks) const;

  static constexpr size_t kMost = 4096;

 private:
  using Key = std::pair<uint32_t, uint64_t>;

  mutable std::mutex mutex_;
  std::map<Key, std::string> reasons_;  // guarded by mutex_
  std::deque<Key> order_;               // guarded by mutex_; oldest first
};

}  // namespace persia::agent
