// A rank: the main process of an instance, which marks phases. Further processes of it, such as data loaders, are no ranks.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

#include "model/worker_process.h"

namespace persia::agent {

// The phase in which a rank waits for others (persia/metrics/phase.h).
inline constexpr std::string_view kSyncPhase = "sync";

// Instead of `sync`, if a signal has stopped the rank there.
inline constexpr std::string_view kStoppedPhase = "stopped";

// Distinguishes it from its successors: its pid namespace, pid, start and the values of the labels role and instance.
using RankProcessKey = std::tuple<std::string, std::string, uint64_t, uint32_t, uint64_t>;

// Whether it is alive, and marks phases.
[[nodiscard]] bool IsRank(const WorkerProcess& process);
[[nodiscard]] RankProcessKey RankProcessKeyOf(const WorkerProcess& process);

}  // namespace persia::agent
