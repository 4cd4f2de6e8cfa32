// A request to end, from a signal or from a peer.
//
// A stop is orderly. Each role that receives it forwards it in its next frame to each peer. The data loader then makes no more
// batches, and the job ends as after its last epoch, with everything drained. Thread safety: any method, from any thread.
#pragma once

#include <atomic>

namespace embedding_job {

class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // Makes SIGINT, SIGTERM and SIGHUP request a stop of this object, and unblocks them: the parent process may have blocked them
  // until this one is ready. REQUIRES: called for one object in the process, which outlives the signals.
  void CatchSignals();

  void Request() noexcept;
  [[nodiscard]] bool Requested() const noexcept { return requested_.load(std::memory_order_relaxed); }
  // A descriptor for poll, readable after the request.
  [[nodiscard]] int fd() const noexcept { return fd_; }
  // Waits at most this long for a stop. True: a stop is requested.
  [[nodiscard]] bool WaitFor(int milliseconds) const;

 private:
  // Relaxed: the flag orders nothing but itself.
  std::atomic<bool> requested_ = false;
  const int fd_;
};

}  // namespace embedding_job
