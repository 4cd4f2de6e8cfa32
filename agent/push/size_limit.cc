#include "push/size_limit.h"

#include <algorithm>

namespace persia::agent {

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
  for (; bytes > most_bytes_ && !in.empty(); in.pop_back()) {
    bytes -= in.back().bytes;
    added.push_back(in.back());
  }
  // The smallest return first.
  std::stable_sort(out.begin(), out.end(), smaller);
  size_t back = 0;
  while (back < out.size() && added.empty() && bytes + out[back].bytes <= most_bytes_ - most_bytes_ / 8) {
    bytes += out[back++].bytes;
  }
  out.erase(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(back));
  out.insert(out.end(), added.begin(), added.end());
  former.clear();
  for (const FamilySize& family : out) former.insert(family.family->name);
  if (!former.empty()) return former;
  left_out_.erase(group);
  return {};
}

}  // namespace persia::agent
