// The agent's metrics about itself, `persia_agent_*`, kept in a prometheus-cpp registry.
//
// Thread safety: Collect as Source; all other methods from any thread.
//
//   OwnMetrics own({.identity = agent, .version = "0.1.0"});
//   own.AddGateway("metrics_gateway:9091");
//   own.PushDone("metrics_gateway:9091", "success", 0.012, 48213);
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "source/source.h"

namespace persia::agent {

class OwnMetrics : public Source {
 public:
  struct Options {
    Identity identity;
    std::string version;
    std::function<std::chrono::system_clock::time_point()> now = std::chrono::system_clock::now;
  };

  explicit OwnMetrics(Options options);
  ~OwnMetrics() override;

  Result<std::shared_ptr<const Snapshot>> Collect() override;

  // Makes the gateway's series, at 0 for each result, so that they are there before the first push.
  void AddGateway(std::string_view gateway);
  // There is nothing to push to it now: when the last push arrived says nothing any more.
  void GatewayIdle(std::string_view gateway);
  // It is not pushed to any more. What was counted stays.
  void RetireGateway(std::string_view gateway);
  // A push of all groups to a gateway is over. `result`: "success", "rejected", "server_error", "unreachable", "interrupted",
  // "deferred" (not made: the gateway asked for that).
  void PushDone(std::string_view gateway, std::string_view result, double seconds, uint64_t bytes);
  // Groups on the gateway that this agent has made and not ended, and those that it has ended.
  void SetGroups(uint64_t groups);
  void GroupsDeleted(uint64_t groups);
  // Identities that another agent pushes as well.
  void SetIdentityConflicts(uint64_t identities);
  // Ticks that were left out since the work before them took longer than the interval.
  void TickSkipped(uint64_t ticks = 1);

  // A gateway's name was looked up.
  void GatewayLookedUp(bool good);
  // The settings were read again, and are in use or were refused. Until the first time they count as good.
  void ConfigReloaded(bool good);

  // Reading and merging all sources took this long.
  void CollectDone(double seconds);
  // Writing the exposition text took this long.
  void RenderDone(double seconds);
  // Somebody asked for /metrics.
  void ScrapeDone();
  // Series of the last collection.
  void SetSeries(uint64_t series);
  // Segments in the directory that are no trouble, by state: "live", "ended" (its process has, and its values still count from
  // it), "other_run".
  void SetSegments(std::string_view state, uint64_t segments);
  // Segments of which the last good values stand, since the newest cannot be read.
  void SetSegmentsBroken(uint64_t segments);
  // Processes of this run that have ended and whose values are in the state; a total.
  void SetRetiredProcesses(uint64_t processes);
  // Series of ended processes for which the state had no room; a total.
  void SetRetiredSeriesDropped(uint64_t series);
  // Series that the workers have and the agent does not show now, by the limit that keeps them out.
  void SetDroppedSeries(std::string_view reason, uint64_t series);
  // Series that are held back since they would spoil a push, by reason.
  void SetQuarantinedSeries(std::string_view reason, uint64_t series);
  // Lines that the log's limit left out; a total.
  void SetLogLinesSuppressed(uint64_t lines);
  // Event records that were overwritten before they were read; a total.
  void SetEventsLost(uint64_t events);
  // Lines that came through the named pipe; totals. Before the first call there are no such series.
  void SetFifoLines(uint64_t good, uint64_t bad);
  // How remote write to a target goes; counts are totals. Before the first call there are no such series.
  struct RemoteWriteCounts {
    uint64_t samples_sent = 0;
    uint64_t samples_refused = 0;
    uint64_t retries = 0;
    uint64_t bytes = 0;
    uint64_t pending_samples = 0;
    uint64_t pending_bytes = 0;
    uint64_t queue_bytes = 0;
    uint64_t damaged_places = 0;
    uint32_t shards = 0;
    int64_t highest_sent_ms = 0;
    int64_t oldest_pending_ms = 0;
    std::map<std::string, uint64_t> dropped_samples{};  // by reason
  };
  void SetRemoteWrite(const std::string& target, const RemoteWriteCounts& counts);
  // Those of other targets, which a reload took away, show no gauges any more.
  void KeepRemoteWrite(const std::set<std::string>& targets);
  // Segments in the directory that are not read, by reason ("version", "corrupt", ...).
  void SetSegmentsRefused(std::string_view reason, uint64_t segments);
  // Records of a kind that this agent does not know, found in segments of newer libraries.
  void SegmentRecordsSkipped(uint64_t records);

 private:
  struct Registry;
  struct RemoteWriteFamilies;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<RemoteWriteFamilies> remote_write_;  // null until the first target; of the collector thread
};

}  // namespace persia::agent
