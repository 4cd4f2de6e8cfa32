#include "source/ordinals.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace persia::agent {

void Ordinals::Assign(std::span<const SegmentReader* const> segments, std::span<const std::string> identities) {
  std::map<std::string, Entry> kept;
  std::map<std::string, std::set<uint32_t>> taken;  // by identity
  std::vector<size_t> fresh;
  for (size_t i = 0; i < segments.size(); ++i) {
    const auto found = by_id_.find(segments[i]->id());
    if (found != by_id_.end() && found->second.identity == identities[i]) {
      taken[identities[i]].insert(found->second.number);
      kept.insert(*found);
    } else {
      fresh.push_back(i);
    }
  }
  std::sort(fresh.begin(), fresh.end(), [&](size_t a, size_t b) {
    return std::pair(segments[a]->header().birth_unix_ns, segments[a]->id()) <
           std::pair(segments[b]->header().birth_unix_ns, segments[b]->id());
  });
  for (const size_t i : fresh) {
    std::set<uint32_t>& numbers = taken[identities[i]];
    uint32_t number = 0;
    for (auto at = numbers.begin(); at != numbers.end() && *at == number; ++at) {
      ++number;
    }
    numbers.insert(number);
    kept[segments[i]->id()] = {identities[i], number};
  }
  by_id_ = std::move(kept);
}

}  // namespace persia::agent
