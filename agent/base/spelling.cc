#include "base/spelling.h"

#include <algorithm>
#include <vector>

namespace persia::agent {
namespace {

constexpr size_t kMaxWordSize = 64;  // longer than every name that the agent knows

char Fold(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
  return c == '-' ? '_' : c;
}

// Optimal string alignment: insertions, deletions, replacements, and swaps of adjacent characters.
size_t EditDistance(std::string_view a, std::string_view b) {
  const size_t width = b.size() + 1;
  std::vector<size_t> table((a.size() + 1) * width);
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      size_t& best = table[i * width + j];
      if (i == 0 || j == 0) {
        best = i + j;
        continue;
      }
      const bool same = Fold(a[i - 1]) == Fold(b[j - 1]);
      best = std::min(
          {table[(i - 1) * width + j] + 1, table[i * width + j - 1] + 1, table[(i - 1) * width + j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && Fold(a[i - 1]) == Fold(b[j - 2]) && Fold(a[i - 2]) == Fold(b[j - 1])) {
        best = std::min(best, table[(i - 2) * width + j - 2] + 1);
      }
    }
  }
  return table.back();
}

}  // namespace

std::string_view ClosestMatch(std::string_view word, std::span<const std::string_view> candidates) {
  if (word.empty() || word.size() > kMaxWordSize) return {};
  std::string_view closest;
  size_t least = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const size_t distance = EditDistance(word, candidate);
    if (distance < least) {
      least = distance;
      closest = candidate;
    }
  }
  return closest;
}

std::string DidYouMean(std::string_view word, std::span<const std::string_view> candidates) {
  const std::string_view closest = ClosestMatch(word, candidates);
  return closest.empty() ? std::string() : "; did you mean \"" + std::string(closest) + "\"?";
}

}  // namespace persia::agent
