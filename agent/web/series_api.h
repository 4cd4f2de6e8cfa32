// GET /api/v1/metadata, /api/v1/series and /api/v1/search: the families and series of the newest collection. API.md describes
// the responses.
//
// Thread safety: functions of their arguments.
#pragma once

#include <string_view>

#include "model/snapshot.h"
#include "web/json_answer.h"

namespace persia::agent {

// `newest` may be null: nothing is collected yet.
JsonAnswer AnswerMetadata(const Snapshot* newest);
JsonAnswer AnswerSearch(std::string_view query, const Snapshot* newest);
JsonAnswer AnswerSeries(std::string_view query, const Snapshot* newest);

}  // namespace persia::agent
