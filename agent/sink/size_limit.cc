#include "sink/size_limit.h"

#include <algorithm>

namespace persia::agent {

const FamilyNames& SizeLimit::Choose(const std::string& group, const std::vector<FamilySize>& families,
                                     std::vector<FamilySize>& added) {
  static const FamilyNames kNone;
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
  // What comes back must leave an eighth free, or it would have to go again soon.
  std::stable_sort(out.begin(), out.end(), smaller);
  size_t back = 0;
  while (back < out.size() && added.empty() && bytes + out[back].bytes <= most_bytes_ - most_bytes_ / 8) {
    bytes += out[back++].bytes;
  }
  out.erase(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(back));
  out.insert(out.end(), added.begin(), added.end());
  if (out.empty()) {
    left_out_.erase(group);
    return kNone;
  }
  former.clear();
  for (const FamilySize& family : out) former.insert(family.family->name);
  return former;
}

}  // namespace persia::agent
