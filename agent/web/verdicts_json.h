// `verdicts` of GET /api/v1/status: the ranks that the others wait for, and what the steps of the ranks consist of. API.md
// describes it.
//
// Thread safety: a function of its argument.
#pragma once

#include <cstddef>
#include <optional>

#include "health/rank_verdicts.h"
#include "web/json_answer.h"

namespace persia::agent {

// Ranks that are compared on the page, of each role: those that wait least.
inline constexpr size_t kRanksCompared = 8;

// For the summary of the run; null: no rank was a straggler.
Json SlowestJson(const std::optional<RankReport::Slowest>& slowest);
// Of a role that stands still, there are no stragglers and no steps: those of before would be taken for those of now.
Json VerdictsJson(const RankReport& report);

}  // namespace persia::agent
