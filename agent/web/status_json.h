// Parts of GET /api/v1/status, and of the report at the job's end. API.md describes them.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "base/json.h"
#include "health/goodput.h"
#include "health/rank_verdicts.h"
#include "model/ends.h"
#include "model/process.h"
#include "web/api.h"

namespace persia::agent {

// The deaths of a job's processes. In the order in which they were found. `attempt`: the present one, if that is known.
[[nodiscard]] Json DeathsJson(std::span<const Process> deaths, const std::optional<RunAttempt>& attempt);

// `goodput`: where the time of the ranks went, with the names of the summary of a run. Null: no rank marks phases.
[[nodiscard]] Json GoodputJson(const GoodputReport& report);

// `verdicts`: the ranks that the others wait for, and what the steps of the ranks consist of.

// Ranks that are compared on the page, of each role: those that wait least.
inline constexpr size_t kRanksCompared = 8;

// For the summary of the run; null: no rank was a straggler.
Json SlowestJson(const std::optional<RankReport::Slowest>& slowest);
// Of a role that stands still, there are no stragglers and no steps: those of before would be taken for those of now.
Json VerdictsJson(const RankReport& report);

}  // namespace persia::agent
