// Writes log lines to stderr, through spdlog.
//
//   SetUpLog(options.log_level, options.log_format);
//   LogInfo("config.loaded", "read " + path);
//
// Each line has an event, a dotted name that stays the same across releases, for searches, and a sentence for people.
//
// A JSON line is valid for any message: {"time": ..., "level": ..., "event": ..., "message": ...}
//
// If the reader of stderr hangs, the agent goes on, and lines are lost. The first line after that says how many.
//
// Thread safety: any function, from any thread.
#pragma once

#include <time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace persia::agent {

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

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError, kOff };
enum class LogFormat : uint8_t { kText, kJson };

// Until the first call, lines of level info and above are written as text.
void SetUpLog(LogLevel level, LogFormat format);

// Limits the lines of each event, but not those of level debug and of a StateLog. Null, as at startup: no limit.
void SetLogLimiter(std::shared_ptr<LogLimiter> limiter);
// Writes a summary line for each flood that has ended (every other log line does so too), or for all of them.
void SummarizeEndedFloods();
void SummarizeAllFloods();

// The time of a line, such as 2026-11-22T19:00:00.000+01:00, in the time zone of the process.
[[nodiscard]] std::string LogTime(const struct timespec& time);

void LogDebug(std::string_view event, std::string_view message);
void LogInfo(std::string_view event, std::string_view message);
void LogWarning(std::string_view event, std::string_view message);
void LogError(std::string_view event, std::string_view message);

// The lines written so far of the levels info, warning and error, by the level's name.
[[nodiscard]] std::vector<std::pair<std::string_view, uint64_t>> LogLinesWritten();

// Writes a line only when a repeatedly checked state changes. No limit applies: every change is a line, so the log has the
// course of an outage. The rate of checks bounds the lines.
//
//   StateLog gateway("gateway");
//   gateway.Good("pushing to " + address);                      // first call: info
//   gateway.Bad("unreachable", "cannot push to " + address);    // first call: warning
//   gateway.Good("pushing to " + address);                      // info, with how long the state was bad
//
// Thread safety: any method, from any thread.
class StateLog {
 public:
  explicit StateLog(std::string event) : event_(std::move(event)) {}

  // Each returns whether the state changed. Bad states of different `kind` are different states.
  bool Good(std::string_view message);
  bool Bad(std::string_view kind, std::string_view message);
  // As Good, but writes a line only after Bad.
  bool Recovered(std::string_view message);

 private:
  bool SetGood(std::string_view message) PERSIA_REQUIRES(mutex_);

  const std::string event_;
  Mutex mutex_;
  std::optional<std::string> state_ PERSIA_GUARDED_BY(mutex_);  // empty string: good
  std::chrono::steady_clock::time_point bad_since_ PERSIA_GUARDED_BY(mutex_);
};

}  // namespace persia::agent
