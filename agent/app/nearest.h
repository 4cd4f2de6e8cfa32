// Finds what somebody meant to write.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace persia::agent {

// The candidate that takes the fewest insertions, deletions, replacements and swaps of neighbours to become `word`; empty if
// none is close enough to be a misspelling of it. Words that only differ in case or in '-' for '_' are close.
std::string_view Nearest(std::string_view word, std::span<const std::string_view> candidates);

// `; did you mean "x"?`, or nothing.
std::string DidYouMean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace persia::agent
