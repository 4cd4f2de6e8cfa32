// How sending to one target goes, over all of its shards: counts, what there is to say, and how long the target wants to be
// left alone.
//
// Thread safety: any method, from any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>

#include "remote/write_queue.h"

namespace persia::agent {

class SendProgress {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Counts {
    uint64_t samples_sent = 0;
    uint64_t samples_refused = 0;  // by a 4xx: never sent again
    uint64_t requests_refused = 0;
    uint64_t retries = 0;  // requests sent again
    uint64_t bytes = 0;    // of bodies, of all requests
    int64_t highest_sent_ms = 0;
    std::string last_error{};  // of the last request; empty if it went well
  };

  // `target`: for messages.
  SendProgress(std::string target, WriteQueue::Log log) : target_(std::move(target)), log_(std::move(log)) {}

  void Try(uint64_t bytes, bool again);
  void Sent(const QueueRecord& record);
  void Refused(const QueueRecord& record, const std::string& error);
  // To be tried again; the target may ask to be left alone until then.
  void Failed(const std::string& error, TimePoint not_before);

  // Waits until `when`, and for as long as the target wants to be left alone. False: Stop was called. HurryUp ends a wait that
  // the target did not ask for.
  bool WaitUntil(TimePoint when);
  void HurryUp();
  void Stop();
  [[nodiscard]] bool stopped() const;

  [[nodiscard]] Counts counts() const;

 private:
  const std::string target_;
  const WriteQueue::Log log_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  Counts counts_;
  TimePoint not_before_{};
  uint64_t hurries_ = 0;
  bool stopped_ = false;
  bool failing_ = false;        // and that was said
  std::set<std::string> told_;  // refusals, without their numbers
};

}  // namespace persia::agent
