// Pushes snapshots to a Prometheus PushGateway: one PUT per identity, which replaces that identity's group and no other.
//
// Groups are tried in rounds. A group that fails by a transport error, 429 or 5xx is retried in the next round, after a pause
// with exponential backoff and jitter; a 4xx other than 400 is final, and its body is in the error. So a group that fails does
// not stop the others. The time budget bounds all rounds together; the next push starts with the groups that this one had no
// time for. After a 400, or a connection that is closed without an answer, only the families that cause it are left out
// (group_sender.h). A 429 or 503 with Retry-After stops all groups for that time.
//
// Each class calls the next: PushGateway -> GroupSender -> GatewayConnection -> HttpClient.
//
// Thread safety: Interrupt, Rearm and LiftQuarantine from any thread; the rest from one.
//
//   PushGateway gateway({.address = GatewayAddress::Parse("metrics_gateway:9091").value()});
//   Status status = gateway.Push(*snapshot);
//   own_metrics.PushDone(gateway.name(), ToString(gateway.last_report().result), ...);
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "format/group_renderer.h"
#include "model/snapshot.h"
#include "net/http_client.h"
#include "net/url.h"
#include "push/gateway_connection.h"
#include "push/group_ledger.h"
#include "push/group_reaper.h"
#include "push/group_sender.h"
#include "push/push_format.h"

namespace persia::agent {

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

// Virtual for tests of its callers.
class PushGateway {
 public:
  using Gzip = GatewayConnection::Gzip;

  struct Options {
    GatewayAddress address;
    HttpClient::Options http{};
    Gzip gzip = Gzip::kAuto;
    PushFormat::Choice format = PushFormat::Choice::kText;
    // For all groups and all rounds together; a push interval is a good choice.
    std::chrono::milliseconds time_budget{10000};
    // Between rounds, by base/timing.h with jitter.
    std::chrono::milliseconds first_pause{100};
    std::chrono::milliseconds longest_pause{5000};
    // A longer Retry-After is cut to this.
    std::chrono::seconds longest_retry_after = std::chrono::hours(1);
    // Of a group; whole families are left out of a larger one.
    size_t max_push_bytes = 64 << 20;
    // After this time a refused family is tried again.
    std::chrono::milliseconds quarantine_retry = std::chrono::hours(1);
    // The groups that this agent has made. Null: no group is deleted.
    GroupLedger* ledger = nullptr;
    // Whether the group of an identity that left the snapshot is deleted.
    bool delete_absent_groups = true;
    // For tests, as GatewayConnection's.
    std::chrono::milliseconds status_limit{1000};
    std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
    std::function<bool(std::chrono::milliseconds)> sleep{};
  };

  explicit PushGateway(Options options);
  virtual ~PushGateway() = default;

  // An error names the gateway, says how many groups failed, and quotes the first failure.
  virtual Status Push(const Snapshot& snapshot);
  // Of the last Push.
  [[nodiscard]] virtual const PushReport& last_report() const { return report_; }
  // In logs, errors and metrics: "host:port".
  [[nodiscard]] const std::string& name() const { return name_; }

  // The running push, and each later one, ends soon with an error, until Rearm.
  virtual void Interrupt() { connection_.Interrupt(); }
  virtual void Rearm() { connection_.Rearm(); }
  // The job is over: deletes all its groups, on this gateway and on former ones; counted in last_report. An error says how many
  // are left. REQUIRES: no push is running.
  virtual Status DeleteGroups(const std::string& job, std::chrono::milliseconds limit);
  // Families that the gateway refused are tried again with the next push.
  virtual void LiftQuarantine() { lift_quarantine_ = true; }

 private:
  struct Group;

  std::optional<Error> WaitForRetryAfter();
  void SetKeys(const Snapshot& snapshot);
  void AddToLedger(const Snapshot& snapshot);
  void PushRounds(const Snapshot& snapshot, std::deque<Group>& pending, std::string& first_error);
  std::optional<std::chrono::milliseconds> PushRound(const Snapshot& snapshot, std::deque<Group>& pending,
                                                     std::string& first_error);
  void Count(const Attempt& attempt, const std::string& path, std::string& first_error);
  void CountMissing(const Snapshot& snapshot);

  const Options options_;
  const std::string name_;
  GatewayConnection connection_;
  GroupSender sender_;
  std::optional<GroupReaper> reaper_;                   // with a ledger only
  std::vector<Identity> keys_;                          // the grouping keys of the snapshot's identities
  std::set<Identity> present_;                          // of them, those that this push has tried so far, as they show a series
  std::set<Identity> arrived_;                          // with this push so far, or with the last
  std::shared_ptr<const Layout> layout_;                // of the last push
  size_t first_group_ = 0;                              // where the next push starts
  std::chrono::steady_clock::time_point not_before_{};  // from Retry-After
  PushReport report_;
  std::atomic<bool> lift_quarantine_ = false;
};

}  // namespace persia::agent
