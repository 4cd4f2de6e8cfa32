// Pushes snapshots to a Prometheus PushGateway: one PUT per identity, which replaces that identity's group and no other.
//
// Groups are tried in rounds. One that fails by a transport error, 429 or 5xx is tried again in the next round, after a pause
// that doubles and is jittered; any other 4xx but 400 is final, and its body is in the error. So a group that fails does not
// stop the others. The time budget bounds all rounds together; a push that it cuts short begins the next time with the groups
// that it had not come to. A 400, or a connection that is closed without an answer, costs the
// families that are the reason and no more (group_sender.h). A gateway that asks to be left
// alone for a while (429 or 503 with Retry-After) is. One that takes a push is asked now and then what it is (push_format.h).
//
// Thread safety: Push and last_report from one thread; Interrupt and Rearm from any thread.
//
//   PushGateway gateway({.address = GatewayAddress::Parse("metrics_gateway:9091").value()});
//   Status status = gateway.Push(*snapshot);
//   own_metrics.PushDone(gateway.name(), ToString(gateway.last_report().result), ...);
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/gateway_address.h"
#include "net/gzip.h"
#include "net/http_client.h"
#include "sink/family_types.h"
#include "sink/group_endings.h"
#include "sink/group_ledger.h"
#include "sink/group_pins.h"
#include "sink/group_sender.h"
#include "sink/owner_watch.h"
#include "sink/push_format.h"
#include "sink/push_result.h"
#include "sink/sink.h"
#include "sink/sink_log.h"

namespace persia::agent {

// What a push came to.
struct PushReport {
  PushResult result = PushResult::kSuccess;
  size_t groups = 0;         // of the snapshot, those with a series to show
  size_t groups_failed = 0;  // of them
  size_t requests = 0;       // with the repeated ones
  uint64_t bytes = 0;        // of bodies as sent, of all requests
  std::chrono::duration<double> duration{0};
  int http_status = 0;                      // of the last answer, 0 if none came
  size_t quarantined_series = 0;            // that the gateway refuses; they do not make a push a failure
  size_t dropped_series = 0;                // left out since their group would be larger than max_push_bytes
  size_t ledger_groups = 0;                 // that this agent may have made and has not ended, on all gateways
  size_t groups_deleted = 0;                // that it ended with this push
  size_t identity_conflicts = 0;            // identities that another agent pushes too
  GroupFormat format = GroupFormat::kText;  // of the next push
};

class PushGateway : public Sink {
 public:
  enum class Gzip : uint8_t {
    kOff,
    kOn,
    kAuto,  // a body of kGzipFromBytes or more to a peer that is not on this host
  };
  // gzip takes off four fifths, but costs some 6 ns a byte here, over twenty times the sending itself, and as much again in the
  // gateway: on loopback it never pays. A smaller body than this leaves in the first flight of a TCP connection anyway.
  static constexpr size_t kGzipFromBytes = 16 * 1024;

  struct Options {
    GatewayAddress address;
    // How it is called in logs and errors, and in metrics; empty: host and port.
    std::string name{};
    HttpClient::Options http{};
    Gzip gzip = Gzip::kAuto;
    PushFormat::Choice format = PushFormat::Choice::kText;
    // For all groups and all rounds together; a push interval is a good choice.
    std::chrono::milliseconds time_budget{10000};
    // The first pause, before jitter; it doubles up to the longest. A pause is drawn evenly from its upper half.
    std::chrono::milliseconds first_pause{100};
    std::chrono::milliseconds longest_pause{5000};
    // Whoever asks to be left alone for longer is asked again after that.
    std::chrono::seconds longest_retry_after = std::chrono::hours(1);
    // How much of a refusal's body an error quotes.
    size_t max_quoted_bytes = 500;
    // Of a group; whole families are left out of a larger one.
    size_t max_push_bytes = 64 << 20;
    // After so long a family that the gateway refused is tried again.
    std::chrono::milliseconds quarantine_retry = std::chrono::hours(1);
    // What this agent has made, so that it can end it. Without one no group is ever ended, and nobody is told apart.
    GroupLedger* ledger = nullptr;
    // Of several gateways each takes the groups that are pinned to it, and leaves the others alone. Null: it takes all.
    std::shared_ptr<const GroupPins> pins{};
    // Whether the group of an identity that left the snapshot is ended.
    bool end_absent_groups = true;
    // How long ending groups may hold up the next push.
    std::chrono::milliseconds ending_limit = std::chrono::seconds(2);
    SinkLog log{};
    // Time, for tests. `sleep` gives false if it was interrupted; without one, Interrupt ends the pause.
    std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
    std::function<bool(std::chrono::milliseconds)> sleep{};
  };

  explicit PushGateway(Options options);

  // An error names the gateway, says how many groups failed, and quotes the first failure.
  Status Push(const Snapshot& snapshot) override;
  // Of the last Push.
  [[nodiscard]] const PushReport& last_report() const { return report_; }
  [[nodiscard]] const std::string& name() const { return options_.name; }
  [[nodiscard]] std::string url() const { return options_.address.Url(); }

  // Other gateways share the groups with this one from now on. What moves to another one is that one's to push, and to end
  // here. REQUIRES: no push is under way, on none of them.
  void SetPins(std::shared_ptr<const GroupPins> pins) { pins_ = std::move(pins); }

  // The push under way, and each later one, ends soon with an error, until Rearm: so a shutdown need not wait for a gateway
  // that does not answer, and can still push what is left.
  void Interrupt();
  void Rearm();
  // The job is over: ends all its groups on this gateway and on former ones. An error says how many are left. Counted in
  // last_report. REQUIRES: no push is under way.
  Status EndGroups(const std::string& job, std::chrono::milliseconds limit);
  // What the gateway refused is tried again with the next push. Any thread.
  void LiftQuarantine() { lift_quarantine_ = true; }

 private:
  struct Group;

  // Waits if the gateway asked for that and there is time; else gives the error of a push that is not to be made.
  std::optional<Error> Deferred();
  std::optional<std::chrono::milliseconds> PushRound(const Snapshot& snapshot, std::deque<Group>& pending,
                                                     std::string& first_error);
  Attempt Send(std::string_view method, const std::string& path, GroupFormat format, const std::string& body, Refusal& refusal);
  bool IsPushGatewayThere();
  // One request of any kind, as it ended.
  Attempt Ask(const HttpRequest& request);
  [[nodiscard]] bool Takes(const Identity& identity) const;
  // Whether it is of a configured gateway; others, formerly configured, do not get its secrets.
  [[nodiscard]] bool IsOurs(const std::string& url) const;
  Attempt ReadOwners(const std::string& gateway, const std::string& job, std::chrono::milliseconds timeout, Owners& owners);
  void SetKeys(const Snapshot& snapshot);
  // Notes the groups of the snapshot that are new, before they are made.
  void EnterGroups(const Snapshot& snapshot);
  void Count(const Attempt& attempt, const std::string& where, std::string& first_error);
  void CountMissing(const Snapshot& snapshot);
  // Waits `least` to `most`. False if there is no time for that, or it was interrupted.
  bool Pause(std::chrono::milliseconds least, std::chrono::milliseconds most);
  [[nodiscard]] std::chrono::milliseconds TimeLeft() const;

  const Options options_;
  HttpClient client_;
  std::atomic<bool> lift_quarantine_ = false;
  FamilyTypes types_;
  GroupSender sender_;
  std::optional<GroupEndings> endings_;  // these two with a ledger only
  std::optional<OwnerWatch> watch_;
  std::shared_ptr<const GroupPins> pins_;
  std::vector<Identity> keys_;  // the grouping keys of the snapshot's identities
  std::vector<size_t> taken_;   // of them, those that this gateway takes
  std::set<Identity> present_;  // of them, those that this push has tried so far, as they show a series
  std::set<Identity> arrived_;  // with this push so far, or with the last
  GzipCompressor compressor_;
  std::minstd_rand jitter_;
  std::string compressed_;  // kept for its memory
  size_t first_group_ = 0;  // where the next push begins
  std::chrono::steady_clock::time_point deadline_;
  std::chrono::steady_clock::time_point not_before_{};  // the gateway asked for that
  PushReport report_;

  std::mutex mutex_;
  std::condition_variable wake_;  // ends a pause; that it was interrupted is the client's to know
};

}  // namespace persia::agent
