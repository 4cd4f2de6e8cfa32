// The wish to end, from a signal or from a peer.
//
// A stop does not cut anything off. Each role that learns of it says so in its next frame to each peer; once the data loader
// knows, it makes no more batches, and the job ends as it would at its last epoch: with everything drained. Thread safety: any
// method, from any thread.
#pragma once

#include <atomic>

namespace embedding_job {

class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // From now on SIGINT, SIGTERM and SIGHUP request a stop of this object. They are unblocked: whoever started this process may
  // have blocked them until it was ready. REQUIRES: one object a process does this, and outlives the signals.
  void CatchSignals();

  void Request() noexcept;
  [[nodiscard]] bool Requested() const noexcept { return requested_.load(std::memory_order_relaxed); }
  // Readable, for poll, from the request on.
  [[nodiscard]] int fd() const noexcept { return fd_; }
  // Waits at most this long for a stop. True: it is requested.
  [[nodiscard]] bool WaitFor(int milliseconds) const;

 private:
  // Relaxed: the flag orders nothing but itself.
  std::atomic<bool> requested_ = false;
  const int fd_;
};

}  // namespace embedding_job
