// What is said of the job as a whole: how it is, what is wrong, and how its ranks compare. /api/v1/status has these sentences;
// the page and `top` show them as they are.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "health/health_report.h"
#include "web/status_api.h"

namespace persia::agent {

// "Running", "Failed, exit 3"
[[nodiscard]] std::string TitleOf(const HealthReport& health);

// What is wrong, the worst first: the reasons of the health; gauges that are no number ("not_finite"), one for each family; the
// ranks that make the others slow ("slow"); and values of the job that were lost ("lost"). Of a job that is over, the ranks are
// not judged.
[[nodiscard]] std::vector<HealthReport::Reason> ReasonsOf(const AgentStatus& status);

// The first clause of a reason: the circumstances of a death, why values were lost, or where to look, follow it.
[[nodiscard]] std::string HeadlineOf(const HealthReport::Reason& reason);

// What a job is like for which there are no reasons but lost values, and that it stands still, before a hang is judged; empty:
// the title and the reasons say all.
[[nodiscard]] std::string SituationOf(const AgentStatus& status);

// How the ranks that run compare; empty: there is only one, one died, hangs or stands still, or it is not known. Of a job that
// is over, the rank that was the slowest.
[[nodiscard]] std::string ComparisonOf(const AgentStatus& status);

}  // namespace persia::agent
