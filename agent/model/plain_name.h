// Which names of metrics and labels all readers take, and are exposed here. Prometheus 3 alone takes any UTF-8 text as a name.
//
// Thread safety: pure functions.
#pragma once

#include <algorithm>
#include <string_view>

#include "base/text.h"

namespace persia::agent {

// Of a metric: letters, digits, '_' and ':', no digit first.
[[nodiscard]] inline bool IsPlainName(std::string_view name) {
  return !name.empty() && !IsDigit(name[0]) &&
         std::all_of(
             name.begin(), name.end(), [](char c) { return IsLetter(c) || IsDigit(c) || c == ':'; });
}

// Of a label: the same without ':'.
[[nodiscard]] inline bool IsPlainLabelName(std::string_view name) {
  return IsPlainName(name) && name.find(':') == std::string_view::npos;
}

}  // namespace persia::agent
