// The push thread: hands snapshots to the sink, one at a time, and never keeps anybody waiting for it.
//
// A snapshot that is offered while the one before is still on its way is not pushed: the next tick has newer numbers.
//
//   Pusher pusher({.push = [&](const Snapshot& s) { return gateway.Push(s); }, ...});
//   pusher.Start();
//   pusher.Offer(snapshot);                  // false: busy
//   pusher.Finish(last);                     // pushes it, and ends
//
// Thread safety: Offer, Insist, Interrupt, state: any thread. Start, Hold, Release and Finish: one at a time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "model/result.h"
#include "model/snapshot.h"

namespace persia::agent {

class Pusher {
 public:
  struct Options {
    // Called in the push thread alone.
    std::function<Status(const Snapshot&)> push;
    // Makes a push under way, and each later one, end soon; called from any thread.
    std::function<void()> interrupt;
    // Undoes that; called in the push thread.
    std::function<void()> rearm;
    // How long Finish lets a push under way go on, before it is given up for the last one.
    std::chrono::milliseconds grace{1000};
    // How long the last push may take; and if the one before failed, or did not end within `grace`: the gateway is asked once
    // more, but nobody waits long for it.
    std::chrono::milliseconds limit{10'000};
    std::chrono::milliseconds limit_if_away{3'000};
  };

  // How pushing goes, for people.
  struct State {
    uint64_t pushes = 0;
    uint64_t failed = 0;
    std::optional<std::chrono::system_clock::time_point> last_success;
    std::chrono::steady_clock::time_point last_success_steady;  // the same moment, to reckon with: the other clock may be set
    std::chrono::steady_clock::duration last_took{0};           // the last push, whether or not it went well
    std::string last_error;                                     // of the last push; empty if it went well
  };

  explicit Pusher(Options options);
  ~Pusher();

  void Start();
  bool Offer(std::shared_ptr<const Snapshot> snapshot);
  // Pushes this one as soon as what is under way is over.
  void Insist(std::shared_ptr<const Snapshot> snapshot);
  // Pushes the last snapshot and ends the thread. REQUIRES: started.
  Status Finish(std::shared_ptr<const Snapshot> last);
  // Drops what waits and takes nothing more until Release; returns once nothing is under way. Whoever wants that soon
  // interrupts the push first. REQUIRES: Finish has not been called.
  void Hold();
  void Release();
  // Ends a push under way, and the last one too: nobody wants to wait any longer.
  void Interrupt();
  [[nodiscard]] State state();
  // In place of the options'. Any thread.
  void SetLimits(std::chrono::milliseconds limit, std::chrono::milliseconds limit_if_away);

 private:
  void Loop();
  bool WaitIdle(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds limit);
  void Note(const Status& status, std::chrono::steady_clock::duration took);

  const Options options_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::shared_ptr<const Snapshot> waiting_;
  bool busy_ = false;
  bool held_ = false;       // between Hold and Release
  bool finishing_ = false;  // Finish was called
  bool ended_ = false;      // what is waiting is the last one
  bool given_up_ = false;
  State state_;
  std::chrono::milliseconds limit_;
  std::chrono::milliseconds limit_if_away_;
  std::thread thread_;
};

}  // namespace persia::agent
