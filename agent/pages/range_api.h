// GET /api/v1/query_range: the lines of a chart. API.md has its parameters.
//
// Thread safety: a function of its arguments.
#pragma once

#include <string_view>
#include <vector>

#include "history/history.h"
#include "model/snapshot.h"
#include "pages/json_answer.h"

namespace persia::agent {

// `newest`: the newest collection, which the history need not have yet; may be null.
JsonAnswer AnswerRange(std::string_view query, const std::vector<History::Entry>& entries, const Snapshot* newest);

}  // namespace persia::agent
