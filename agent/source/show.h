// The families that a segment's family becomes, and which of its cells each takes.
//
// Thread safety: pure functions, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "model/snapshot.h"
#include "source/merge_plan.h"
#include "source/segment_values.h"

namespace persia::agent {

struct Show {
  Fill fill = Fill::kCounter;
  MetricType type = MetricType::kUntyped;
  const char* own_name = nullptr;  // null: named after the program's metric
  const char* help = nullptr;
};

// Of a kind that this version does not know: none. Of a stream one, which stands for whatever the naming says.
std::span<const Show> ShowsOf(persia::metrics::segment::Kind kind);
// What a stream is shown as if the naming asks for this type.
Show StreamShow(std::optional<MetricType> type);
// What processes could not record.
Show DroppedShow();

Part PartOf(Fill fill, persia::metrics::segment::Kind kind, uint32_t segment, const SegmentSeries& series);

}  // namespace persia::agent
