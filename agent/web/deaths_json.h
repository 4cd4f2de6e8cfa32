// The deaths of a job's processes as a JSON array: in GET /api/v1/status, and in the report at the job's end. API.md describes
// it.
//
// Thread safety: a pure function.
#pragma once

#include <span>

#include "base/json.h"
#include "health/deaths.h"

namespace persia::agent {

// In the order in which they were found.
[[nodiscard]] Json DeathsJson(std::span<const Death> deaths);

}  // namespace persia::agent
