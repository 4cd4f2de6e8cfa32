// Keeps one event from flooding the log: a gateway that flaps, a client that sends garbage, a directory full of broken files.
//
// Each event has a bucket of `burst` lines, and one line more for each `refill`: with the defaults at most ten in any minute.
// What does not fit is left out and counted, and once nothing was left out for `quiet`, one line says how much it was and what
// the last of it said.
//
//   LogLimiter limiter;
//   if (limiter.Admit("push", 3, message)) ... write it
//   for (const LogLimiter::Flood& flood : limiter.TakeEnded()) ... write one line
//
// Thread safety: any method, from any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace persia::agent {

class LogLimiter {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Options {
    uint32_t burst = 5;
    std::chrono::seconds refill{12};
    std::chrono::seconds quiet{60};
    // Events beyond share one bucket, "other".
    size_t max_events = 64;
    std::function<TimePoint()> now = std::chrono::steady_clock::now;
  };
  // Lines that were left out, from the first to the last.
  struct Flood {
    std::string event;
    uint64_t lines = 0;
    std::chrono::seconds lasted{0};
    int severity = 0;  // the highest of them
    std::string last;  // what the last of them said
  };

  LogLimiter() : LogLimiter(Options()) {}
  explicit LogLimiter(Options options);

  // Whether the line may be written; if not, it is counted.
  bool Admit(std::string_view event, int severity, std::string_view message);
  // The floods that are over; each comes once.
  std::vector<Flood> TakeEnded();
  // Those that are not over too: nothing comes after.
  std::vector<Flood> TakeAll();
  // Lines left out so far.
  [[nodiscard]] uint64_t suppressed() const;

 private:
  struct Bucket {
    double lines = 0;  // that may be written now
    TimePoint filled;
    TimePoint flood_began = {};
    TimePoint flood_last = {};
    Flood flood = {};
  };

  std::vector<Flood> Take(std::chrono::seconds quiet);

  const Options options_;
  mutable std::mutex mutex_;
  std::map<std::string, Bucket, std::less<>> buckets_;  // guarded by mutex_
  uint64_t suppressed_ = 0;                             // guarded by mutex_
};

}  // namespace persia::agent
