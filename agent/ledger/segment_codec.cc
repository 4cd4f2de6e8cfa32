#include "ledger/segment_codec.h"

#include <algorithm>

namespace persia::agent {

namespace segment = persia::metrics::segment;
using segment::Kind;

std::chrono::steady_clock::time_point SteadyTime(std::chrono::system_clock::time_point wall, const CollectTime& now) {
  return now.steady - std::max(std::chrono::system_clock::duration(0), now.wall - wall);
}

bool IsGood(const SegmentFamily& family) {
  return family.kind >= Kind::kCounter && family.kind <= Kind::kNativeHistogram && family.policy <= GaugePolicy::kEach &&
         GoodBounds(family.kind, family.bounds) && family.bounds.size() <= (HasBounds(family.kind) ? segment::kMaxBounds : 0);
}

bool AreLabels(std::string_view bytes, uint32_t count) {
  ByteReader reader(bytes);
  for (uint64_t i = 0; i < 2 * uint64_t{count} && reader.ok(); ++i) reader.String();
  return reader.done();
}

}  // namespace persia::agent
