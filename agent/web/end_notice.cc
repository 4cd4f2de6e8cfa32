#include "web/end_notice.h"

namespace persia::agent {

EndNotice::Outcome EndNotice::Await() {
  const MutexLock lock(mutex_);
  if (is_over_) return Outcome::kEnded;
  if (waiting_ == kMostWaiting) return Outcome::kTooMany;
  ++waiting_;
  const auto deadline = std::chrono::steady_clock::now() + patience_;
  while (!is_over_ && std::chrono::steady_clock::now() < deadline) ended_.WaitUntil(mutex_, deadline);
  --waiting_;
  return is_over_ ? Outcome::kEnded : Outcome::kNotYet;
}

void EndNotice::End() {
  const MutexLock lock(mutex_);
  if (!is_over_ && waiting_ > 0) read_at_ = std::chrono::steady_clock::now() + kReading;
  is_over_ = true;
  ended_.NotifyAll();
}

void EndNotice::AwaitReaders() {
  const MutexLock lock(mutex_);
  while (std::chrono::steady_clock::now() < read_at_) ended_.WaitUntil(mutex_, read_at_);
}

}  // namespace persia::agent
