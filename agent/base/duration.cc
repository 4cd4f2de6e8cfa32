#include "base/duration.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/text.h"

namespace persia::agent {
namespace {

constexpr double kMaxSeconds = 10.0 * 365 * 86400;
// In the order in which they are tried: "ms" before "m". Unicode has two micro signs, and Go accepts both.
constexpr std::pair<std::string_view, double> kUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"\u00b5s", 1e-6}, {"\u03bcs", 1e-6},
                                                          {"ms", 1e-3}, {"s", 1},     {"m", 60},         {"h", 3600}};

// Of text that is not a plain number; negative if it is not a duration.
double SecondsWithUnits(std::string_view text) {
  double seconds = 0;
  while (!text.empty()) {
    const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
    double number = 0;
    if (!ParseNumber(text.substr(0, digits), number)) return -1;
    text.remove_prefix(digits);
    const auto unit =
        std::find_if(std::begin(kUnits), std::end(kUnits), [&](const auto& u) { return text.starts_with(u.first); });
    if (unit == std::end(kUnits)) return -1;
    seconds += number * unit->second;
    text.remove_prefix(unit->first.size());
  }
  return seconds;
}

constexpr int64_t kDayMs = 86'400'000;
constexpr std::pair<std::string_view, int64_t> kPrometheusUnits[] = {
    {"y", 365 * kDayMs}, {"w", 7 * kDayMs}, {"d", kDayMs}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}};

// Negative if it is not a duration.
int64_t PrometheusMilliseconds(std::string_view text) {
  if (text == "0") return 0;
  constexpr auto kMaxMs = static_cast<int64_t>(kMaxSeconds) * 1000;
  int64_t total = 0;
  const auto* next = std::begin(kPrometheusUnits);
  do {
    const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    int64_t number = 0;
    if (!ParseNumber(text.substr(0, digits), number)) return -1;
    text.remove_prefix(digits);
    const std::string_view name = text.substr(0, std::min(text.find_first_of("0123456789"), text.size()));
    const auto* unit = std::find_if(next, std::end(kPrometheusUnits), [&](const auto& u) { return u.first == name; });
    if (unit == std::end(kPrometheusUnits) || number > (kMaxMs - total) / unit->second) return -1;
    total += number * unit->second;
    text.remove_prefix(name.size());
    next = unit + 1;
  } while (!text.empty());
  return total;
}

}  // namespace

Result<std::chrono::milliseconds> ParsePrometheusDuration(std::string_view text) {
  const int64_t total = PrometheusMilliseconds(text);
  if (total < 0) return Bad(text, "is not a duration (30s, 1m30s, 1d12h)");
  return std::chrono::milliseconds(total);
}

Result<std::chrono::milliseconds> ParseDuration(std::string_view text) {
  double seconds = 0;
  if (!ParseNumber(text, seconds)) {
    seconds = text.empty() ? -1 : SecondsWithUnits(text);
  }
  if (!(seconds >= 0 && seconds <= kMaxSeconds)) return Bad(text, "is not a duration (10, 30s, 5m, 1m20s)");
  // Less than the error of a product of doubles, which must not add a millisecond.
  constexpr double kJustBelow = 1 - 1e-12;
  return std::chrono::milliseconds(static_cast<int64_t>(std::ceil(seconds * 1000 * kJustBelow)));
}

}  // namespace persia::agent
