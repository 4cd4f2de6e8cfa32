// Suggests the known name that a misspelled one probably means.
//
// Thread safety: pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace persia::agent {

// The candidate at the smallest edit distance from `word`; empty if none is close enough. Letter case, and '-' for '_', do not
// count as differences.
std::string_view ClosestMatch(std::string_view word, std::span<const std::string_view> candidates);

// `; did you mean "x"?`, or nothing.
std::string DidYouMean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace persia::agent
