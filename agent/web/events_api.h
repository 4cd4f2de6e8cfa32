// GET /api/v1/events: the newest event records. API.md has its parameters.
//
// Thread safety: a function of its arguments.
#pragma once

#include <string_view>

#include "job/event_log.h"
#include "web/json_answer.h"

namespace persia::agent {

JsonAnswer AnswerEvents(std::string_view query, const EventLog& log);

}  // namespace persia::agent
