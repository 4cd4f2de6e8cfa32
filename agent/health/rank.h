// A rank: the main process of an instance, which marks phases. Further processes of it, such as data loaders, are no ranks.
//
// Thread safety: pure functions.
#pragma once

#include <string_view>
#include <utility>

#include "model/process.h"

namespace persia::agent {

// The phase in which a rank waits for others (persia/metrics/phase.h).
inline constexpr std::string_view kSyncPhase = "sync";

// Instead of `sync`, if a signal has stopped the rank there.
inline constexpr std::string_view kStoppedPhase = "stopped";

// Distinguishes it from its successors, and from other ranks in the same process.
using RankProcessKey = std::pair<Identity, ProcessId>;

// Whether it is alive, and marks phases.
[[nodiscard]] inline bool IsRank(const Process& process) {
  return process.alive && process.ordinal == 0 && !process.phase_seconds.empty();
}
[[nodiscard]] inline RankProcessKey RankProcessKeyOf(const Process& process) { return {process.identity, process.id}; }

}  // namespace persia::agent
