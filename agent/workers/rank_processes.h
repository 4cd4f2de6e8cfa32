// A process of a rank from its segment: start, end, phases and steps.
//
// Thread safety: a function of its arguments.
#pragma once

#include "model/rank_process.h"
#include "workers/segment_lifecycle.h"

namespace persia::agent {

// As of its last read. `hangs` is not set.
[[nodiscard]] RankProcess RankProcessOf(const SegmentLifecycle::Segment& segment);

}  // namespace persia::agent
