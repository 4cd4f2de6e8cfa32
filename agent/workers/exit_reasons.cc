#include "workers/exit_reasons.h"

#include <sys/wait.h>

#include <cstring>

namespace persia::agent {

std::string ExitReason(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return "exit_" + std::to_string(WEXITSTATUS(wait_status));
  const int signal = WTERMSIG(wait_status);
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal_" + std::to_string(signal);
}

void ExitReasons::Add(uint32_t pid, uint64_t start_ticks, int wait_status) {
  std::string reason = ExitReason(wait_status);
  const MutexLock lock(mutex_);
  const Key key{pid, start_ticks};
  if (!reasons_.insert_or_assign(key, std::move(reason)).second) return;
  order_.push_back(key);
  if (order_.size() > kMaxProcesses) {
    reasons_.erase(order_.front());
    order_.pop_front();
  }
}

std::optional<std::string> ExitReasons::ReasonOf(uint32_t pid, uint64_t start_ticks) const {
  const MutexLock lock(mutex_);
  const auto found = reasons_.find({pid, start_ticks});
  return found == reasons_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace persia::agent
