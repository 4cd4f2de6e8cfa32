#include "workers/last_events.h"

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <string_view>
#include <variant>

#include "base/text.h"
#include "utf8.h"

namespace persia::agent {
namespace {

constexpr size_t kMostEvents = 5;
constexpr size_t kMostBytes = 300;  // of a text

// As lib/python/persia_metrics/uncaught.py records it.
constexpr std::string_view kExceptionType = "python";
constexpr std::string_view kExceptionName = "uncaught_exception";

bool IsException(const JobEvent& event) { return event.type == kExceptionType && event.name == kExceptionName; }

std::string Shortened(std::string_view text) {
  return OneLine(metrics::FirstBytes(text, kMostBytes)) + (text.size() > kMostBytes ? "..." : "");
}

std::string TextOf(const JobEvent::Value& value) {
  struct Visitor {
    std::string operator()(std::monostate /*null*/) const { return "null"; }
    std::string operator()(bool yes) const { return yes ? "true" : "false"; }
    std::string operator()(int64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const {
      std::array<char, 32> text{};
      const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), number);
      return {text.data(), end};
    }
    std::string operator()(const std::string& text) const { return text; }
  };
  return std::visit(Visitor(), value);
}

std::string TimeText(uint64_t unix_ms) {
  const auto seconds = static_cast<std::time_t>(unix_ms / 1000);
  std::tm utc{};
  char text[16];
  if (gmtime_r(&seconds, &utc) == nullptr || std::strftime(text, sizeof text, "%H:%M:%S", &utc) == 0) return "";
  return text;
}

}  // namespace

void KeepLast(std::span<const JobEvent> events, std::vector<JobEvent>& kept) {
  if (events.empty()) return;
  kept.insert(kept.end(), events.begin(), events.end());
  if (kept.size() > kMostEvents) kept.erase(kept.begin(), kept.end() - kMostEvents);
}

std::optional<UncaughtException> ExceptionIn(std::span<const JobEvent> events) {
  std::optional<UncaughtException> exception;
  for (const JobEvent& event : events) {
    if (!IsException(event)) continue;
    exception.emplace();
    exception->raised_at = std::chrono::system_clock::time_point(std::chrono::milliseconds(event.unix_ms));
    for (const auto& [key, value] : event.metadata) {
      const auto* const text = std::get_if<std::string>(&value);
      const auto* const number = std::get_if<int64_t>(&value);
      const auto* const yes = std::get_if<bool>(&value);
      if (key == "caught") exception->was_caught = yes != nullptr && *yes;
      if (key == "errno" && number != nullptr && *number > 0 && *number < 4096)
        exception->error_number = static_cast<int>(*number);
      if (text == nullptr) continue;
      if (key == "type") exception->type = Shortened(*text);
      if (key == "message") exception->message = Shortened(*text);
      if (key == "where") exception->where = Shortened(*text);
      if (key == "phase") exception->phase = Shortened(*text);
    }
  }
  return exception;
}

std::vector<std::string> TextsOf(std::span<const JobEvent> events) {
  std::vector<std::string> texts;
  for (const JobEvent& event : events) {
    if (IsException(event)) continue;
    std::string text = TimeText(event.unix_ms) + " " + event.type + " " + event.name;
    std::string_view before = ": ";
    for (const auto& [key, value] : event.metadata) {
      text += std::string(before) + key + "=" + TextOf(value);
      before = ", ";
    }
    texts.push_back(Shortened(text));
  }
  return texts;
}

}  // namespace persia::agent
