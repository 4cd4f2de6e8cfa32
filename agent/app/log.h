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
#include <mutex>
#include <string>
#include <string_view>

#include "app/options.h"

namespace persia::agent {

// Before it is called, lines of level info and above are written as text.
void SetUpLog(LogLevel level, LogFormat format);

void LogDebug(std::string_view event, std::string_view message);
void LogInfo(std::string_view event, std::string_view message);
void LogWarning(std::string_view event, std::string_view message);
void LogError(std::string_view event, std::string_view message);

// One line as the JSON format writes it, without the end of line.
std::string JsonLogLine(std::string_view time, std::string_view level, std::string_view event, std::string_view message);

// Writes a line when something that is looked at again and again changes, and none while it stays as it is.
//
//   StateLog gateway("gateway");
//   gateway.Good("pushing to " + address);             // first time: info
//   gateway.Bad("cannot push to " + address + why);    // once, a warning, however often it is called
//   gateway.Good("pushing again");                     // info, with how long it was away
class StateLog {
 public:
  explicit StateLog(std::string event) : event_(std::move(event)) {}

  // Returns whether the state changed.
  bool Good(std::string_view message);
  bool Bad(std::string_view message);

 private:
  enum class State { kUnknown, kGood, kBad };

  const std::string event_;
  std::mutex mutex_;
  State state_ = State::kUnknown;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace persia::agent
