// What a merge adds up: the measurements of one process, or of all ended processes of one identity together.
//
// Thread safety: a view; what it points to stays as it is until the merge is over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "source/segment_records.h"
#include "source/segment_values.h"

namespace persia::agent {

// Which of two definitions of a family is the newer one: the birth of the process, its id, the place among its families.
struct FamilyAge {
  uint64_t birth_unix_ns = 0;
  std::string segment_id = {};
  uint64_t number = 0;

  friend auto operator<=>(const FamilyAge&, const FamilyAge&) = default;
};

struct MergeInput {
  std::string_view id;      // the segment's, or one that no segment has
  uint64_t generation = 0;  // rises when identity, families or series change
  const SegmentIdentity* identity = nullptr;
  uint64_t birth_unix_ns = 0;
  std::span<const SegmentFamily> families = {};
  std::span<const SegmentSeries> series = {};
  std::span<const std::byte> records = {};  // where the labels of the series stand
  const SegmentValues* values = nullptr;
  // By SegmentSeries::common: the collector's tick in which the value changed last.
  std::span<const uint64_t> changed_at = {};
  // The process has ended: its gauges count only where no living one has set them.
  bool ended = false;
  // The number of the process among those of its identity.
  uint32_t ordinal = 0;
  // Of many processes together: by family and by series, instead of `birth_unix_ns` and `ordinal`.
  std::span<const FamilyAge> family_ages = {};
  std::span<const uint32_t> ordinals = {};

  [[nodiscard]] FamilyAge AgeOf(size_t family) const {
    return family_ages.empty() ? FamilyAge{birth_unix_ns, std::string(id), family} : family_ages[family];
  }
  [[nodiscard]] uint32_t OrdinalOf(size_t series_index) const { return ordinals.empty() ? ordinal : ordinals[series_index]; }
};

}  // namespace persia::agent
