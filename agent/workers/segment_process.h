// The process of a segment, as of the segment's last read.
//
// Thread safety: a function of its arguments.
#pragma once

#include <chrono>

#include "model/process.h"
#include "workers/segment_lifecycle.h"

namespace persia::agent {

// Without an identity, and without what the ledger knows of its place. A living process is in its phase until `now`.
[[nodiscard]] Process ProcessOf(const SegmentLifecycle::Segment& segment, std::chrono::steady_clock::time_point now);

}  // namespace persia::agent
