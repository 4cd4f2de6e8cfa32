// `machine` of GET /api/v1/status: the machine under the ranks, and their GPUs. API.md describes it.
//
// Thread safety: functions of their arguments.
#pragma once

#include <span>
#include <vector>

#include "base/json.h"
#include "model/snapshot.h"
#include "web/history.h"

namespace persia::agent {

// The collections of the last 30 seconds, or what the history has of them, for rates. `history`: the oldest first.
[[nodiscard]] std::vector<History::Entry> RecentEntries(std::span<const History::Entry> history);

// Null: the agent reads neither the machine nor a GPU. `recent`: those of RecentEntries.
[[nodiscard]] Json MachineJson(const Snapshot& newest, std::span<const History::Entry> recent);

}  // namespace persia::agent
