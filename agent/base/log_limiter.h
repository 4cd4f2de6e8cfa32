// Keeps one event from flooding the log: a client that sends garbage, a directory of broken files.
//
// Each event has a token bucket of `burst` lines, refilled by one line every `refill`: at most ten lines in any minute by
// default. Other lines are left out and counted. When none was left out for `idle`, the flood has ended and is reported.
//
//   LogLimiter limiter;
//   if (limiter.Admit("push", 3, message)) ... write the line
//   for (const LogLimiter::Flood& flood : limiter.TakeEnded()) ... write a summary
//
// Thread safety: any method, from any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"

namespace persia::agent {

class LogLimiter {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Options {
    uint32_t burst = 5;
    std::chrono::seconds refill{12};
    std::chrono::seconds idle{60};
    // Further events share one bucket, "other".
    size_t max_events = 64;
    std::function<TimePoint()> now = std::chrono::steady_clock::now;
  };
  // Lines of one event that were left out.
  struct Flood {
    std::string event;
    uint64_t lines = 0;
    std::chrono::seconds duration{0};
    int severity = 0;  // the highest of the lines
    std::string last_message;
  };

  LogLimiter() : LogLimiter(Options()) {}
  explicit LogLimiter(Options options);

  // Whether the line may be written; if not, it is counted.
  bool Admit(std::string_view event, int severity, std::string_view message);
  // The floods that have ended, or all of them. Each flood is returned once.
  std::vector<Flood> TakeEnded();
  std::vector<Flood> TakeAll();
  // The number of lines left out so far.
  [[nodiscard]] uint64_t suppressed() const;

 private:
  struct Bucket {
    double tokens = 0;
    TimePoint filled;
    TimePoint flood_began = {};
    TimePoint flood_last = {};
    Flood flood = {};
  };

  std::vector<Flood> Take(std::chrono::seconds idle);

  const Options options_;
  mutable Mutex mutex_;
  std::map<std::string, Bucket, std::less<>> buckets_ PERSIA_GUARDED_BY(mutex_);
  uint64_t suppressed_ PERSIA_GUARDED_BY(mutex_) = 0;
};

}  // namespace persia::agent
