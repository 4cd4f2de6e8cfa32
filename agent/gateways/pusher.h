// The push thread of one gateway: pushes one snapshot at a time, and nothing waits for it.
//
// A snapshot that is offered during a push is skipped: the next tick has newer values.
//
//   Pusher pusher(gateway, reports, {});
//   pusher.Start();
//   pusher.Offer(snapshot);                  // false: busy
//   pusher.Finish(last);                     // pushes it, and ends
//
// Pusher calls PushSink, and passes its report to PushReports.
//
// Thread safety: Offer, Enqueue, Interrupt, SetLimits and state from any thread. Start, Hold, Release and Finish: one at a
// time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/result.h"
#include "gateways/push_reports.h"
#include "model/snapshot.h"
#include "push/push_sink.h"

namespace persia::agent {

class Pusher {
 public:
  struct Limits {
    // How long the last push may take; and if the one before failed, or did not end within `grace`.
    std::chrono::milliseconds last_push{10'000};
    std::chrono::milliseconds last_push_if_away{3'000};
    // How long Finish waits for a running push before it interrupts it.
    std::chrono::milliseconds grace{1000};
  };

  struct State {
    uint64_t pushes = 0;
    uint64_t failed = 0;
    std::optional<std::chrono::system_clock::time_point> last_success;
    std::chrono::steady_clock::time_point last_success_steady;  // the same moment, by a clock that is never set
    std::chrono::steady_clock::duration last_took{0};           // the last push, successful or not
    std::string last_error;                                     // of the last push; empty if it succeeded
  };

  // `reports` outlives it, and knows the sink's name.
  Pusher(std::shared_ptr<PushSink> sink, PushReports& reports, Limits limits);
  // Interrupts a running push.
  ~Pusher();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::shared_ptr<PushSink> sink();

  void Start();
  bool Offer(std::shared_ptr<const Snapshot> snapshot);
  // Pushes this snapshot after the running push. It replaces a snapshot that waits.
  void Enqueue(std::shared_ptr<const Snapshot> snapshot);
  // Pushes the last snapshot and ends the thread. REQUIRES: started.
  Status Finish(std::shared_ptr<const Snapshot> last);
  // Drops a snapshot that waits, and accepts none until Release. Returns when no push is running; the caller may interrupt
  // it. REQUIRES: Finish has not been called.
  void Hold();
  // Continues with a sink of the same name. REQUIRES: Hold was called, or Start was not.
  void Release(std::shared_ptr<PushSink> sink);
  // Ends the running push, and each later one.
  void Interrupt();
  [[nodiscard]] State state();
  void SetLimits(Limits limits);

 private:
  void Run();
  std::shared_ptr<const Snapshot> Next();
  void PushDone(const Status& status, std::chrono::steady_clock::duration took);
  [[nodiscard]] bool IsIdle() const PERSIA_REQUIRES(mutex_) { return !busy_ && waiting_ == nullptr; }
  bool WaitIdle(std::chrono::milliseconds limit) PERSIA_REQUIRES(mutex_);

  const std::string name_;
  PushReports& reports_;
  Mutex mutex_;
  CondVar wake_;
  CondVar idle_;
  std::shared_ptr<PushSink> sink_ PERSIA_GUARDED_BY(mutex_);  // replaced by Release only
  std::shared_ptr<const Snapshot> waiting_ PERSIA_GUARDED_BY(mutex_);
  bool busy_ PERSIA_GUARDED_BY(mutex_) = false;
  bool held_ PERSIA_GUARDED_BY(mutex_) = false;       // between Hold and Release
  bool finishing_ PERSIA_GUARDED_BY(mutex_) = false;  // Finish was called
  bool ended_ PERSIA_GUARDED_BY(mutex_) = false;      // the waiting snapshot is the last
  bool interrupted_ PERSIA_GUARDED_BY(mutex_) = false;
  State state_ PERSIA_GUARDED_BY(mutex_);
  Limits limits_ PERSIA_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace persia::agent
