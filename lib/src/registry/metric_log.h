// The library's log lines about a metric. Thread safety: any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <string_view>

#include "log.h"

namespace persia::metrics {
inline namespace abi_1 {

// Whether it is exported as it is.
inline bool IsPlain(std::string_view name) {
  return std::ranges::all_of(
      name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; });
}

// Writes the line `metric "loss" of group "train" (train_loss) <text><detail>`, if `logged` is not set, and sets it. In
// parentheses is the exported name, if both are plain. Allocates nothing.
inline void LogMetricOnce(std::atomic<bool>& logged, std::string_view group, std::string_view name, std::string_view text,
                          std::string_view detail = {}) noexcept {
  constexpr size_t kShown = 80;
  const auto shown = [](std::string_view of) { return of.substr(0, kShown); };
  const auto end = [](std::string_view of) { return of.size() > kShown ? "...\"" : "\""; };
  const bool has_exported = !name.empty() && group.size() + name.size() <= kShown && IsPlain(group) && IsPlain(name);
  const auto exported = [has_exported](std::string_view of) { return has_exported ? of : std::string_view(); };
  const bool has_prefix = !group.empty() && group != "persia";
  LogLineOnce(logged, {"metric \"", shown(name), end(name), " of group \"", shown(group), end(group), exported(" ("),
                       exported(has_prefix ? group : ""), exported(has_prefix ? "_" : ""), exported(name), exported(")"), " ",
                       text, detail});
}

}  // namespace abi_1
}  // namespace persia::metrics
