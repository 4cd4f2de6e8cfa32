// The cells of a series: which each lane has, and which the common lane alone has. Thread safety: pure functions.
#pragma once

#include <cstdint>

#include "registry.h"
#include "segment_format.h"

namespace persia::metrics {
inline namespace abi_1 {

// Whether the first cell is the last value that was set, in the common lane alone.
constexpr bool HasLast(segment::Kind kind) { return kind == segment::Kind::kGauge || kind == segment::Kind::kStream; }

// What the first cell of a new series holds.
constexpr uint64_t FirstValueOf(segment::Kind kind) { return HasLast(kind) ? segment::kUnset : 0; }

// Calls `take(offset, is_double)` for each cell of a series that lanes have.
template <class Take>
void ForEachLaneCell(const internal::FamilyNode& family, const Take& take) {
  const auto is_double = [&](uint32_t offset) {
    switch (family.kind) {
      case segment::Kind::kCounter:
        return offset == 1;
      case segment::Kind::kHistogram:
      case segment::Kind::kNativeHistogram:
        return offset == 0;
      case segment::Kind::kStream:
        return offset == segment::kStreamPositiveSum || offset == segment::kStreamNegativeSum;
      case segment::Kind::kEvent:
        return offset == 2;
      case segment::Kind::kGauge:
      case segment::Kind::kClock:
        return false;
    }
    return false;
  };
  if (family.kind == segment::Kind::kClock) return;  // all its cells are common ones
  const bool has_common = family.kind != segment::Kind::kCounter && family.kind != segment::Kind::kHistogram &&
                          family.kind != segment::Kind::kNativeHistogram;
  const uint32_t first = has_common ? 1 : 0;
  for (uint32_t offset = first; offset < segment::CellsOf(family.kind, family.bound_count); ++offset)
    take(offset, is_double(offset));
}

}  // namespace abi_1
}  // namespace persia::metrics
