// The destination of pushes: a PushGateway, or a test's replacement.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "format/exposition_format.h"
#include "model/snapshot.h"

namespace persia::agent {

// The result of a push, or of one group of it. The result of a push is the worst of its groups', in this order.
enum class PushResult : uint8_t {
  kSuccess,      // 200 or 202; families that are held back do not change that
  kRejected,     // a 4xx: the gateway will never accept this body
  kServerError,  // 429 or 5xx to the last attempt
  kUnreachable,  // no answer, or none in time
  kInterrupted,  // by Interrupt
  kDeferred,     // not tried, since the gateway sent Retry-After
};

inline std::string_view ToString(PushResult result) {
  static constexpr std::array<std::string_view, 6> kNames = {"success",     "rejected",    "server_error",
                                                             "unreachable", "interrupted", "deferred"};
  return kNames[static_cast<size_t>(result)];
}

struct PushReport {
  PushResult result = PushResult::kSuccess;
  size_t groups = 0;         // of the snapshot, those with a series to show
  size_t groups_failed = 0;  // of them
  size_t requests = 0;       // PUT and POST, retries included
  uint64_t bytes = 0;        // of the bodies as sent, of all requests
  std::chrono::duration<double> duration{0};
  int http_status = 0;                                // of the last answer, 0 if none came
  size_t quarantined_series = 0;                      // that the gateway refuses; they do not make a push a failure
  size_t dropped_series = 0;                          // left out since their group would be larger than the limit
  size_t ledger_groups = 0;                           // that this agent may have made and has not deleted, on any gateway
  size_t groups_deleted = 0;                          // after this push
  ExpositionFormat format = ExpositionFormat::kText;  // of the next push
};

// Thread safety: Interrupt, Rearm and LiftQuarantine from any thread; the rest from one.
class PushSink {
 public:
  virtual ~PushSink() = default;

  // In logs, errors and metrics: "host:port".
  [[nodiscard]] virtual const std::string& name() const = 0;
  virtual Status Push(const Snapshot& snapshot) = 0;
  // Of the last Push.
  [[nodiscard]] virtual const PushReport& last_report() const = 0;
  // The running push, and each later one, ends soon with an error, until Rearm.
  virtual void Interrupt() = 0;
  virtual void Rearm() = 0;
  // Families that the gateway refused are tried again with the next push.
  virtual void LiftQuarantine() = 0;
  // The job is over: deletes all its groups. An error says how many are left.
  virtual Status DeleteGroups(const std::string& job, std::chrono::milliseconds limit) = 0;
};

}  // namespace persia::agent
