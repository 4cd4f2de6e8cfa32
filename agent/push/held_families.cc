#include "push/held_families.h"

#include <algorithm>

namespace persia::agent {
namespace {

constexpr size_t kSmall = 64 << 10;  // the lowest value of the setting

}  // namespace

bool SizeLimit::Lower(size_t refused, TimePoint now) {
  if (refused <= kSmall) return false;
  lowered_ = std::max(refused / 4 * 3, kSmall);
  retry_at_ = now + retry_;
  return true;
}

FamilyNames SizeLimit::Choose(const std::string& group, const std::vector<FamilySize>& families,
                              std::vector<FamilySize>& added) {
  added.clear();
  FamilyNames& former = left_out_[group];
  std::vector<FamilySize> in;
  std::vector<FamilySize> out;
  size_t bytes = 0;
  for (const FamilySize& family : families) {
    const bool left_out = former.contains(family.family->name);
    (left_out ? out : in).push_back(family);
    if (!left_out) bytes += family.bytes;
  }
  const auto smaller = [](const FamilySize& a, const FamilySize& b) { return a.bytes < b.bytes; };
  std::stable_sort(in.begin(), in.end(), smaller);
  for (; bytes > most_bytes() && !in.empty(); in.pop_back()) {
    bytes -= in.back().bytes;
    added.push_back(in.back());
  }
  // The smallest return first.
  std::stable_sort(out.begin(), out.end(), smaller);
  size_t back = 0;
  while (back < out.size() && added.empty() && bytes + out[back].bytes <= most_bytes() - most_bytes() / 8)
    bytes += out[back++].bytes;
  out.erase(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(back));
  out.insert(out.end(), added.begin(), added.end());
  former.clear();
  for (const FamilySize& family : out) former.insert(family.family->name);
  if (!former.empty()) return former;
  left_out_.erase(group);
  return {};
}

}  // namespace persia::agent
