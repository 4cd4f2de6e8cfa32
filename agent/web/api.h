// The API's answers about series, ranges and events. API.md describes parameters and responses.
//
// Thread safety: functions of their arguments.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "job/event_log.h"
#include "model/snapshot.h"
#include "web/history.h"

namespace persia::agent {

// A response of /api/v1.
struct JsonAnswer {
  int status = 200;
  std::string body;
};

JsonAnswer AnswerWith(const Json& json, int status = 200);
// {"error": error}
JsonAnswer RefuseWith(int status, std::string_view error);

// The parameters of a request: `name=value&name=value`, percent-encoded.
using Parameters = std::vector<std::pair<std::string, std::string>>;

// In their order. A parameter without `=` has an empty value; empty ones are left out.
Parameters ParseParameters(std::string_view query);

// GET /api/v1/metadata, /api/v1/series and /api/v1/search: the families and series of the newest collection. `newest` may be
// null: nothing is collected yet.
JsonAnswer AnswerMetadata(const Snapshot* newest);
JsonAnswer AnswerSearch(std::string_view query, const Snapshot* newest);
JsonAnswer AnswerSeries(std::string_view query, const Snapshot* newest);

// GET /api/v1/query_range: the values of a chart. `newest`: the newest collection, which may be later than the last entry of
// the history; may be null.
JsonAnswer AnswerRange(std::string_view query, const std::vector<History::Entry>& entries, const Snapshot* newest);

// GET /api/v1/events: the newest event records.
JsonAnswer AnswerEvents(std::string_view query, const EventLog& log);

}  // namespace persia::agent
