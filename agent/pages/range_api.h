// GET /api/v1/query_range: the lines of a chart. API.md has its parameters.
//
// Thread safety: a function of its arguments.
#pragma once

#include <string_view>
#include <vector>

#include "history/history.h"
#include "pages/json_answer.h"

namespace persia::agent {

JsonAnswer AnswerRange(std::string_view query, const std::vector<History::Entry>& entries);

}  // namespace persia::agent
