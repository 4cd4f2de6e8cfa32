// GET /api/v1/query_range: the values of a chart. API.md describes the parameters and the response.
//
// Thread safety: a function of its arguments.
#pragma once

#include <string_view>
#include <vector>

#include "model/snapshot.h"
#include "web/history.h"
#include "web/json_answer.h"

namespace persia::agent {

// `newest`: the newest collection, which may be later than the last entry of the history; may be null.
JsonAnswer AnswerRange(std::string_view query, const std::vector<History::Entry>& entries, const Snapshot* newest);

}  // namespace persia::agent
