// GET /api/v1/status: the state of the agent, its gateway and its workers. API.md describes the response.
//
// Thread safety: functions of their arguments.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "health/goodput.h"
#include "health/job_health.h"
#include "health/not_finite.h"
#include "health/rank_verdicts.h"
#include "model/ends.h"
#include "model/process.h"
#include "model/snapshot.h"
#include "web/api.h"
#include "web/history.h"
#include "web/throughput.h"

namespace persia::agent {

// Pushes to the gateway.
struct GatewayStatus {
  std::string address = "off";  // "off": nothing is pushed
  size_t groups = 0;            // of the last push
  std::string format{};         // of the next push: "text" or "protobuf"; "" before the first
  uint64_t pushes = 0;
  uint64_t pushes_failed = 0;
  std::optional<std::chrono::system_clock::time_point> last_success{};
  std::chrono::milliseconds since_success{0};  // by the steady clock
  std::chrono::microseconds last_took{0};      // the last push, successful or not
  std::string last_error{};                    // empty: the last push succeeded
};

struct AgentStatus {
  std::string version;
  std::string job;
  std::string run_id;
  std::string directory;
  std::optional<RunAttempt> attempt{};  // none: not known, or no command is run
  std::chrono::milliseconds push_interval{0};
  std::chrono::milliseconds look_interval{0};  // of collections for the page
  GatewayStatus gateway{};
  size_t workers = 0;
  size_t workers_ended = 0;
  size_t segments_refused = 0;
  size_t series = 0;
  std::shared_ptr<const std::vector<Process>> processes = std::make_shared<std::vector<Process>>();  // never null
  std::shared_ptr<const HealthReport> health = std::make_shared<HealthReport>();                     // never null
  std::shared_ptr<const RankReport> ranks = std::make_shared<RankReport>();                          // never null
  std::shared_ptr<const GoodputReport> goodput = std::make_shared<GoodputReport>();                  // never null
  std::shared_ptr<const NotFiniteReport> not_finite = std::make_shared<NotFiniteReport>();           // never null
  std::vector<HealthReport::Reason> losses{};                                                        // LossesIn
  std::optional<Throughput> throughput{};
  std::optional<Progress> progress{};
  std::vector<History::Entry> recent{};  // RecentEntries, for rates of the machine
  History::Stats history;
  std::string kept_page{};  // the file to which the page is written after the end; empty: not known yet, or it is not kept
};

// The machine is that of the series in `newest`, which may be null: then there has been no collection.
JsonAnswer AnswerStatus(const AgentStatus& status, const Snapshot* newest, std::chrono::system_clock::time_point now);

}  // namespace persia::agent
