// The deaths of a job's processes as a JSON array: in GET /api/v1/status, and in the report at the job's end. API.md describes
// it.
//
// Thread safety: a pure function.
#pragma once

#include <optional>
#include <span>

#include "base/json.h"
#include "model/process.h"
#include "model/run_attempt.h"

namespace persia::agent {

// In the order in which they were found. `attempt`: the present one, if that is known.
[[nodiscard]] Json DeathsJson(std::span<const Process> deaths, const std::optional<RunAttempt>& attempt);

}  // namespace persia::agent
