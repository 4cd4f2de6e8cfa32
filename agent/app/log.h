// Log lines on stderr, through spdlog.
//
//   SetUpLog(options.log_level, options.log_format);
//   LogInfo("config.loaded", "read " + path);
//
// Each line has an event, a dotted name that does not change from release to release, for those who search, and a sentence
// for those who read. In JSON a line is {"time": ..., "level": ..., "event": ..., "message": ...}, valid whatever the message
// contains. Thread safety: any function, from any thread.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "app/log_limiter.h"
#include "app/options.h"

namespace persia::agent {

// Before it is called, lines of level info and above are written as text.
void SetUpLog(LogLevel level, LogFormat format);

// From now on no event writes more than the limiter lets through, but for lines of level debug, which somebody asked for. Null:
// no limit, as before the first call, so that nothing that is wrong at the start is left out.
void SetLogLimiter(std::shared_ptr<LogLimiter> limiter);
// Writes the lines on what was left out: of floods that are over, as each line that is written does too, or of all.
void LogEndedFloods();
void LogAllFloods();

void LogDebug(std::string_view event, std::string_view message);
void LogInfo(std::string_view event, std::string_view message);
void LogWarning(std::string_view event, std::string_view message);
void LogError(std::string_view event, std::string_view message);

// Writes a line when something that is looked at again and again changes, and none while it stays as it is.
//
//   StateLog gateway("gateway");
//   gateway.Good("pushing to " + address);                      // first time: info
//   gateway.Bad("unreachable", "cannot push to " + address);    // once, a warning, however often it is called
//   gateway.Good("pushing to " + address);                      // info, with how long it was not so
//
// Thread safety: any method, from any thread.
class StateLog {
 public:
  explicit StateLog(std::string event) : event_(std::move(event)) {}

  // Each returns whether the state changed. States of another `kind` are other states.
  bool Good(std::string_view message);
  bool Bad(std::string_view kind, std::string_view message);
  // Good, but worth a line only after Bad.
  bool Recovered(std::string_view message);

 private:
  const std::string event_;
  std::mutex mutex_;
  std::optional<std::string> state_;  // empty: good
  std::chrono::steady_clock::time_point bad_since_;
};

}  // namespace persia::agent
