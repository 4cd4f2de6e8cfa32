#include "base/size.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/text.h"

namespace persia::agent {
namespace {

constexpr double kMaxBytes = 1ULL << 53;  // up to here doubles are exact
constexpr std::string_view kPrefixes = "kmgt";

// The bytes of one "k", "GB" or "mib", in lower case; 0 if it is not a unit.
double BytesOf(std::string_view unit) {
  if (unit == "b") return 1;
  if (unit.ends_with('b')) unit.remove_suffix(1);
  if (unit.empty()) return 0;
  const size_t power = kPrefixes.find(unit.front());
  const bool binary = unit.substr(1) == "i";
  if (power == std::string_view::npos || (!binary && unit.size() > 1)) return 0;
  return std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(power + 1));
}

}  // namespace

Result<uint64_t> ParseSize(std::string_view text) {
  uint64_t bytes = 0;
  if (ParseNumber(text, bytes)) return bytes;
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  std::string unit(text.substr(digits));
  if (unit.starts_with(' ')) unit.erase(0, 1);
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  double number = 0;
  const double size = ParseNumber(text.substr(0, digits), number) ? number * BytesOf(unit) : 0;
  if (!(size > 0 && size <= kMaxBytes)) return Bad(text, "is not a size (1048576, 64MiB, 1GB, 10k)");
  return static_cast<uint64_t>(std::llround(size));
}

}  // namespace persia::agent
