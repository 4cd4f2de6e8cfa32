// `goodput` of GET /api/v1/status: where the time of the ranks went, with the names of the summary of a run. API.md describes
// it.
//
// Thread safety: a function of its argument.
#pragma once

#include "base/json.h"
#include "health/goodput_report.h"

namespace persia::agent {

// Null: no rank marks phases.
[[nodiscard]] Json GoodputJson(const GoodputReport& report);

}  // namespace persia::agent
