// The agent's page as one file: its scripts, its style and all that the agent would answer, so that it opens without a server.
//
// Thread safety: a function of its arguments.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "job/event_log.h"
#include "model/snapshot.h"
#include "web/history.h"
#include "web/status_api.h"

namespace persia::agent {

// HTML. Each family has at most 12 label sets and 240 points over the whole history, or bands of 120 points. Families whose
// values would make the data larger than `max_bytes` have no chart, and the page says how many. `newest` may be null.
std::string MakeReport(const AgentStatus& status, const std::vector<History::Entry>& entries, const Snapshot* newest,
                       const EventLog& events, std::chrono::system_clock::time_point now, size_t max_bytes = 32 << 20);

}  // namespace persia::agent
