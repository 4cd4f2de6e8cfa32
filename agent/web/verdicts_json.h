// `verdicts` of GET /api/v1/status: the ranks that the others wait for, and what the steps of the ranks consist of. API.md
// describes it.
//
// Thread safety: a function of its argument.
#pragma once

#include <cstddef>

#include "health/rank_verdicts.h"
#include "web/json_answer.h"

namespace persia::agent {

// Ranks that are compared on the page, of each role: those that wait least.
inline constexpr size_t kRanksCompared = 8;

Json VerdictsJson(const RankReport& report);

}  // namespace persia::agent
