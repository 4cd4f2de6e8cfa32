// The push thread of an agent: pushes one snapshot at a time to the gateway, and nothing waits for it.
//
// A snapshot that is offered during a push is skipped: the next tick has newer values. A reload may replace the gateway. The
// outcome of each push is in the agent's own metrics and in the log.
//
//   Pusher pusher({.own = own, .pace = {.interval = 10s}});
//   pusher.Use({.gateway = gateway});        // before Start, and whenever the gateway changes
//   pusher.Start();
//   pusher.Offer(snapshot);                  // false: busy
//   pusher.Finish(last);                     // pushes it, and ends
//
// Thread safety: Start, Use, TryAgain, Finish and DeleteGroups wait for each other; the rest from any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "base/result.h"
#include "format/group_renderer.h"
#include "model/snapshot.h"
#include "net/name_lookup.h"
#include "own/own_metrics.h"
#include "push/push_gateway.h"

namespace persia::agent {

// Looks a host up until it has an address, at once and then every 30 seconds.
//
// The lookups are in a detached thread, since a resolver without a server may take half a minute. No call waits for one.
//
//   NameWatch watch("metrics_gateway", {}, [&](bool known) { ... });
//
// Thread safety: none.
class NameWatch {
 public:
  struct Options {
    std::chrono::milliseconds interval = std::chrono::seconds(30);
    std::function<bool(const std::string& host)> has_address = [](const auto& host) { return LookUpAll(host).ok(); };
  };

  // `answered` is called in the thread of the lookups, after each of them; true: the host has an address, and is looked up no
  // more.
  NameWatch(const std::string& host, Options options, std::function<void(bool known)> answered);
  // Returns when `answered` is not running; it is not called any more.
  ~NameWatch();
  NameWatch(const NameWatch&) = delete;
  NameWatch& operator=(const NameWatch&) = delete;

 private:
  // Shared with the thread, which may outlive this object.
  struct State {
    Mutex mutex;
    CondVar wake;
    bool stopped PERSIA_GUARDED_BY(mutex) = false;
  };

  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

class Pusher {
 public:
  struct Pace {
    std::chrono::milliseconds interval{10'000};  // a push that takes longer is logged
    // How long the last push may take; and if the one before failed, or did not end within `grace`.
    std::chrono::milliseconds last_push{10'000};
    std::chrono::milliseconds last_push_if_away{3'000};
    // How long Finish waits for a running push before it interrupts it.
    std::chrono::milliseconds grace{1000};
  };
  struct Target {
    std::shared_ptr<PushGateway> gateway{};  // null: nothing is pushed
    // Not empty: nothing is pushed until this host has an address.
    std::string awaited_host{};
  };
  struct Options {
    OwnMetrics& own;  // outlives the pusher
    Pace pace{};
    NameWatch::Options look_up{};
    // How long Finish waits for the first answer about an awaited host.
    std::chrono::milliseconds answer_patience{100};
    // Called once, if the awaited host has no address.
    std::function<void()> host_is_missing = [] {};
  };
  struct State {
    std::string gateway;                                // its name; empty: nothing is pushed
    size_t groups = 0;                                  // of the last push
    ExpositionFormat format = ExpositionFormat::kText;  // of the next push
    uint64_t pushes = 0;
    uint64_t failed = 0;
    std::optional<std::chrono::system_clock::time_point> last_success;
    std::chrono::steady_clock::time_point last_success_steady;  // the same moment, by a clock that is never set
    std::chrono::steady_clock::duration last_took{0};           // the last push, successful or not
    std::string last_error;                                     // of the last push; empty if it succeeded
  };

  explicit Pusher(Options options) : options_(std::move(options)), pace_(options_.pace) {}
  // Interrupts a running push.
  ~Pusher();

  void Start();
  // Interrupts a running push; the next ones go to this gateway. One of the same name keeps the counts.
  void Use(Target target);
  // The next push tries refused families again, and an awaited host is looked up now.
  void TryAgain();
  bool Offer(std::shared_ptr<const Snapshot> snapshot);
  // Pushes this snapshot after the running push. It replaces a snapshot that waits.
  void Enqueue(std::shared_ptr<const Snapshot> snapshot);
  // Pushes the last snapshot and ends the thread. REQUIRES: started.
  Status Finish(std::shared_ptr<const Snapshot> last);
  // The job is over: deletes all its groups. REQUIRES: Finish is over.
  Status DeleteGroups(const std::string& job);
  // Ends the running push, and each later one.
  void Interrupt();
  void SetPace(Pace pace);
  [[nodiscard]] State state();

 private:
  void Watch() PERSIA_REQUIRES(changing_);
  void HostAnswered(bool known);
  void SetGateway(std::shared_ptr<PushGateway> gateway) PERSIA_REQUIRES(mutex_);
  void Run();
  std::shared_ptr<const Snapshot> Next(std::shared_ptr<PushGateway>& gateway);
  void Report(const std::string& gateway, const PushReport& report, const Status& status);
  void Log(const std::string& gateway, const PushReport& report, const Status& status);
  void PushDone(const PushReport& report, const Status& status, std::chrono::steady_clock::duration took);
  [[nodiscard]] bool IsIdle() const PERSIA_REQUIRES(mutex_) { return !busy_ && waiting_ == nullptr; }
  bool WaitIdle(std::chrono::milliseconds limit) PERSIA_REQUIRES(mutex_);

  const Options options_;

  Mutex changing_;  // locked before the watch's mutex and mutex_
  bool started_ PERSIA_GUARDED_BY(changing_) = false;
  bool finished_ PERSIA_GUARDED_BY(changing_) = false;
  std::unique_ptr<NameWatch> watch_ PERSIA_GUARDED_BY(changing_);  // calls HostAnswered

  Mutex mutex_;
  CondVar wake_;
  CondVar idle_;  // also after an answer about the host
  Pace pace_ PERSIA_GUARDED_BY(mutex_);
  std::shared_ptr<PushGateway> gateway_ PERSIA_GUARDED_BY(mutex_);  // null: there is none
  Target awaited_ PERSIA_GUARDED_BY(mutex_);                        // becomes the gateway when its host has an address
  std::string known_host_ PERSIA_GUARDED_BY(mutex_);                // was awaited, and has an address
  bool host_has_answer_ PERSIA_GUARDED_BY(mutex_) = false;          // that of `awaited_`
  bool missing_is_told_ PERSIA_GUARDED_BY(mutex_) = false;
  std::shared_ptr<const Snapshot> waiting_ PERSIA_GUARDED_BY(mutex_);
  bool busy_ PERSIA_GUARDED_BY(mutex_) = false;
  bool finishing_ PERSIA_GUARDED_BY(mutex_) = false;  // Finish was called
  bool ended_ PERSIA_GUARDED_BY(mutex_) = false;      // the waiting snapshot is the last
  bool interrupted_ PERSIA_GUARDED_BY(mutex_) = false;
  State state_ PERSIA_GUARDED_BY(mutex_);

  // The push thread's; made anew for another gateway, while no push is running.
  std::optional<StateLog> push_log_;
  std::optional<StateLog> slow_log_;
  std::thread thread_;
};

}  // namespace persia::agent
