// GET /api/v1/status, metadata and series: what the agent does and what it has. API.md has their answers.
//
// Thread safety: functions of their arguments.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "history/history.h"
#include "model/snapshot.h"
#include "pages/json_answer.h"

namespace persia::agent {

// Role, instance, process, as the labels have them.
using WorkerPlace = std::tuple<std::string, std::string, std::string>;

// How pushing to one gateway goes.
struct GatewayStatus {
  std::string address;
  size_t groups = 0;     // of the last push
  std::string format{};  // of the next, "text" or "protobuf"; of several "mixed" if they differ; "" before the first
  uint64_t pushes = 0;
  uint64_t pushes_failed = 0;
  std::optional<std::chrono::system_clock::time_point> last_success{};
  std::chrono::milliseconds since_success{0};  // not the difference to the wall clock, which may be set meanwhile
  std::chrono::microseconds last_took{0};      // the last push, whether or not it went well
  std::string last_error{};                    // empty: the last push went well
};

// What the agent knows of itself.
struct AgentStatus {
  std::string version;
  std::string job;
  std::string run_id;
  std::string directory;
  std::chrono::milliseconds push_interval{0};
  bool pushes = true;                   // false: the agent is scraped
  std::vector<GatewayStatus> gateways;  // may be empty as long as nobody knows their addresses
  size_t workers = 0;
  size_t workers_ended = 0;
  size_t segments_refused = 0;
  size_t series = 0;
  std::map<WorkerPlace, uint32_t> pids;  // of workers that are alive
  History::Stats history;
};

// `newest`: where the workers are found, as persia_process_* has them; may be null.
JsonAnswer AnswerStatus(const AgentStatus& status, const Snapshot* newest, std::chrono::system_clock::time_point now);
JsonAnswer AnswerMetadata(const Snapshot* newest);
JsonAnswer AnswerSeries(std::string_view query, const Snapshot* newest);

}  // namespace persia::agent
