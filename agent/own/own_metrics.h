// The agent's metrics about itself, `persia_agent_*`, kept in a prometheus-cpp registry.
//
// Thread safety: Collect: the collector thread alone; all other methods from any thread.
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
#include <string>
#include <string_view>

#include "model/snapshot.h"
#include "own/remote_write_metrics.h"

namespace persia::agent {

class OwnMetrics {
 public:
  struct Options {
    Identity identity;
    std::string version;
    std::function<std::chrono::system_clock::time_point()> now = std::chrono::system_clock::now;
  };

  explicit OwnMetrics(Options options);
  ~OwnMetrics();

  std::shared_ptr<const Snapshot> Collect();

  // Creates the gateway's series, with 0 for each result, so that they exist before the first push.
  void AddGateway(std::string_view gateway);
  // The gateway is no longer in use: removes its gauges; its counters stay.
  void RetireGateway(std::string_view gateway);
  // A push of all groups to a gateway ended. `result`: "success", "rejected", "server_error", "unreachable", "interrupted",
  // "deferred" (no push, because of the gateway's Retry-After).
  void PushDone(std::string_view gateway, std::string_view result, double seconds, uint64_t bytes);
  // Groups on gateways that this agent has created and not deleted.
  void SetGroups(uint64_t groups);
  void GroupsDeleted(uint64_t groups);
  // Whether another agent has the identity of this one.
  void SetIdentityConflict(bool conflict);
  // Ticks skipped because the previous collection took longer than the interval.
  void TickSkipped(uint64_t ticks = 1);

  // A reload of the settings succeeded or failed. Before the first one, the last reload counts as successful. `errors`: as
  // below.
  void ConfigReloaded(bool good, uint64_t errors);
  // Errors in the settings.
  void SetConfigErrors(uint64_t errors);

  // All sources were read and merged.
  void CollectDone(double seconds);
  // The exposition text was written.
  void RenderDone(double seconds);
  // A request for /metrics was answered.
  void ScrapeDone();
  // Series of the last collection, and their limit.
  void SetSeries(uint64_t series, uint64_t limit);
  // Readable segments in the directory, by state: "live", "ended" (the process has ended, its values are still read from the
  // segment), "other_run", "orphaned" (the segment is refused, the values that the state has of it count).
  void SetSegments(std::string_view state, uint64_t segments);
  // Segments that became unreadable: their last good values are exposed.
  void SetSegmentsBroken(uint64_t segments);
  // Ended processes of this run whose values are in the state; a total.
  void SetRetiredProcesses(uint64_t processes);
  // Series of ended processes that were dropped because of the state's limits; a total.
  void SetRetiredSeriesDropped(uint64_t series);
  // The state on disk. `behind`: for how long the oldest change that is not on disk has been waiting.
  void SetState(std::chrono::milliseconds behind, uint64_t file_bytes, uint64_t written_bytes, uint64_t errors);
  // Series of workers that are not exposed now, by the limit that they exceed.
  void SetDroppedSeries(std::string_view reason, uint64_t series);
  // Series that are not pushed now because the gateway would refuse the push, by reason.
  void SetQuarantinedSeries(std::string_view reason, uint64_t series);
  // Lines written to the log, by level; a total.
  void SetLogLines(std::string_view level, uint64_t lines);
  // Lines suppressed by the log's limit; a total.
  void SetLogLinesSuppressed(uint64_t lines);
  // Event records that were overwritten before they were read; a total.
  void SetEventsLost(uint64_t events);
  // Lines read from the named pipe; totals. The first call creates the series.
  void SetFifoLines(uint64_t good, uint64_t bad);
  // Counts of remote write, by target. The first call of a target creates its series. Removes the gauges of all other targets,
  // which a reload removed.
  void SetRemoteWrite(const std::map<std::string, RemoteWriteCounts>& targets);
  // Segments in the directory that are not read, by reason ("version", "corrupt", ...).
  void SetSegmentsRefused(std::string_view reason, uint64_t segments);
  // Records of unknown kinds, from newer libraries, were skipped.
  void SegmentRecordsSkipped(uint64_t records);

 private:
  struct Registry;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<RemoteWriteMetrics> remote_write_;  // null until the first target; used by the collector thread alone
};

}  // namespace persia::agent
