#include "source/own_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "segment_format.h"
#include "source/registry_source.h"

namespace persia::agent {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

// A push goes over the network, through a gateway that may be busy.
const Histogram::BucketBoundaries kPushSeconds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};
// Collecting and rendering are the agent's own work.
const Histogram::BucketBoundaries kWorkSeconds{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                                               0.025,  0.05,    0.1,    0.25,  1,      5};

#ifdef __clang__
const std::string kCompiler = "clang " + std::to_string(__clang_major__) + "." + std::to_string(__clang_minor__);
#else
const std::string kCompiler = "gcc " __VERSION__;
#endif
const std::string kSegmentVersion =
    std::to_string(persia::metrics::segment::kMajor) + "." + std::to_string(persia::metrics::segment::kMinor);

constexpr const char* kPushResults[] = {"success", "rejected", "server_error", "unreachable", "interrupted", "deferred"};
constexpr const char* kRemoteWriteDropReasons[] = {"queue_bytes", "queue_age", "disk_full", "corrupt",
                                                   "behind",      "duplicate", "ends",      "not_open"};
constexpr const char* kStates[] = {"live", "ended", "other_run"};
constexpr const char* kRefusals[] = {"access", "corrupt", "duplicate", "magic", "owner", "size", "type", "version"};

template <class Builder>
auto& Many(prometheus::Registry& registry, Builder builder, const char* name, const char* help) {
  return builder.Name(name).Help(help).Register(registry);
}
template <class Builder>
auto& One(prometheus::Registry& registry, Builder builder, const char* name, const char* help) {
  return Many(registry, builder, name, help).Add({});
}
Histogram& Work(prometheus::Registry& registry, const char* name, const char* help) {
  return Many(registry, BuildHistogram(), name, help).Add({}, kWorkSeconds);
}

// Sets the child with one label; it is made at the first call.
void SetOf(Family<Gauge>& family, const char* label, std::string_view value, uint64_t to) {
  family.Add({{label, std::string(value)}}).Set(static_cast<double>(to));
}
// Brings a counter to a total that is kept elsewhere. Called by one thread at a time.
void RaiseTo(Counter& counter, uint64_t total) {
  counter.Increment(std::max(0.0, static_cast<double>(total) - counter.Value()));
}

}  // namespace

// The registry and what is in it.
struct OwnMetrics::Registry {
  explicit Registry(Options options) : now(std::move(options.now)), source(registry, std::move(options.identity)) {
    BuildGauge()
        .Name("persia_agent_build_info")
        .Help("1, with what the agent was built from in its labels.")
        .Register(registry)
        .Add({{"version", options.version}, {"compiler", kCompiler}, {"segment_version", kSegmentVersion}})
        .Set(1);
    for (const char* state : kStates) SetOf(segments, "state", state, 0);
    for (const char* reason : kRefusals) SetOf(segments_refused, "reason", reason, 0);
    SetOf(quarantined, "reason", "gateway", 0);
    for (const char* result : {"success", "failure"}) {
      reloads.Add({{"result", result}});
      lookups.Add({{"result", result}});
    }
    SetReloaded(true);
    SetOf(dropped, "reason", "push_bytes", 0);
  }

  struct Gateway {
    Histogram& duration;
    Counter& bytes;
    Gauge& consecutive_failures;
  };

  Gateway& GatewayOf(const std::string& name) {
    const std::lock_guard lock(mutex);
    const auto known = gateways.find(name);
    if (known != gateways.end()) return known->second;
    for (const char* result : kPushResults) pushes.Add({{"gateway", name}, {"result", result}});
    const prometheus::Labels labels{{"gateway", name}};
    return gateways
        .emplace(name,
                 Gateway{push_duration.Add(labels, kPushSeconds), push_bytes.Add(labels), consecutive_failures.Add(labels)})
        .first->second;
  }

  void Idle(const std::string& gateway) {
    GatewayOf(gateway).consecutive_failures.Set(0);
    last_success.Remove(&last_success.Add({{"gateway", gateway}}));
  }
  void Retire(const std::string& gateway) {
    Idle(gateway);
    consecutive_failures.Remove(&GatewayOf(gateway).consecutive_failures);
    const std::lock_guard lock(mutex);
    gateways.erase(gateway);
  }

  void ConfigReloaded(bool good) {
    reloads.Add({{"result", good ? "success" : "failure"}}).Increment();
    SetReloaded(good);
  }
  // Also for the settings of the start, which is no reload.
  void SetReloaded(bool good) {
    last_reload_successful.Set(good ? 1 : 0);
    if (good) last_reload_success.Set(std::chrono::duration<double>(now().time_since_epoch()).count());
  }

  void PushDone(const std::string& gateway, const std::string& result, double seconds, uint64_t bytes) {
    Gateway& series = GatewayOf(gateway);
    pushes.Add({{"gateway", gateway}, {"result", result}}).Increment();
    if (result == "deferred") return;  // neither a push nor a failure of one
    series.duration.Observe(seconds);
    series.bytes.Increment(static_cast<double>(bytes));
    if (result != kPushResults[0]) {
      series.consecutive_failures.Increment();
      return;
    }
    series.consecutive_failures.Set(0);
    last_success.Add({{"gateway", gateway}}).Set(std::chrono::duration<double>(now().time_since_epoch()).count());
  }

  const std::function<std::chrono::system_clock::time_point()> now;
  prometheus::Registry registry;
  RegistrySource source;

  Family<Counter>& reloads =
      Many(registry, BuildCounter(), "persia_agent_config_reloads_total",
           "Times that the settings were read again while the agent ran, by result: success or failure.");
  Family<Counter>& lookups = Many(registry, BuildCounter(), "persia_agent_gateway_lookups_total",
                                  "Times that a gateway's name (dns+name) was looked up, by result: success or failure, after "
                                  "which its last known addresses stay.");
  Gauge& last_reload_successful = One(registry, BuildGauge(), "persia_agent_config_last_reload_successful",
                                      "Whether the settings were good when they were last read: 1, or 0.");
  Gauge& last_reload_success = One(registry, BuildGauge(), "persia_agent_config_last_reload_success_timestamp_seconds",
                                   "When the settings in use were read, in seconds since 1970.");
  Family<Counter>& pushes = Many(registry, BuildCounter(), "persia_agent_pushes_total",
                                 "Pushes of all groups to a gateway, by how they ended: success, rejected (a 4xx), "
                                 "server_error (429 or 5xx), unreachable, interrupted, "
                                 "or deferred (not made, since the gateway asked to be left alone).");
  Family<Histogram>& push_duration =
      Many(registry, BuildHistogram(), "persia_agent_push_duration_seconds",
           "Time from the first request of a push to the answer to its last, repeated ones and pauses included.");
  Family<Counter>& push_bytes = Many(registry, BuildCounter(), "persia_agent_push_bytes_total",
                                     "Bytes of request bodies sent to a gateway, after compression.");
  Family<Gauge>& consecutive_failures = Many(registry, BuildGauge(), "persia_agent_push_consecutive_failures",
                                             "Pushes to a gateway that failed since the last that did not.");
  Family<Gauge>& last_success = Many(registry, BuildGauge(), "persia_agent_last_push_success_timestamp_seconds",
                                     "When all groups last arrived at a gateway, in seconds since 1970.");
  Family<Gauge>& segments_refused = Many(registry, BuildGauge(), "persia_agent_segments_refused",
                                         "Segments in the job's directory that are not read now, by reason.");
  Gauge& groups = One(registry, BuildGauge(), "persia_agent_groups",
                      "Groups that this agent may have made on a gateway and has not ended, as its ledger says.");
  Counter& groups_deleted = One(registry, BuildCounter(), "persia_agent_groups_deleted_total",
                                "Groups that this agent ended on a gateway, since nothing pushes them any more.");
  Gauge& identity_conflicts = One(registry, BuildGauge(), "persia_agent_identity_conflicts",
                                  "Identities of this agent that another agent pushed to the same gateway, when that was "
                                  "last looked for.");
  Counter& ticks_skipped = One(registry, BuildCounter(), "persia_agent_ticks_skipped_total",
                               "Push intervals left out, since the work before took longer than an interval.");
  Histogram& collect_duration = Work(registry, "persia_agent_collect_duration_seconds", "Time to read and merge all sources.");
  Histogram& render_duration =
      Work(registry, "persia_agent_render_duration_seconds", "Time to write the exposition text for a scrape.");
  Gauge& series = One(registry, BuildGauge(), "persia_agent_series", "Series of the last collection.");
  Family<Gauge>& segments =
      Many(registry, BuildGauge(), "persia_agent_segments",
           "Segments in the job's directory, by state: live, ended (the process has, and its values still "
           "count from it), other_run (left alone).");
  Gauge& segments_broken =
      One(registry, BuildGauge(), "persia_agent_segments_broken",
          "Segments of which the last good values stand, since the newest cannot be read: somebody damaged them.");
  Counter& retired = One(registry, BuildCounter(), "persia_agent_retired_processes_total",
                         "Processes of this run that have ended and whose values are in the agent's state.");
  Counter& retired_series_dropped =
      One(registry, BuildCounter(), "persia_agent_retired_series_dropped_total",
          "Series of ended processes whose values are not kept, since the limits on series leave no room for them.");
  Family<Gauge>& dropped = Many(registry, BuildGauge(), "persia_agent_dropped_series",
                                "Series that workers have and that are not shown now, by the limit that keeps them out.");
  Family<Gauge>& quarantined = Many(registry, BuildGauge(), "persia_agent_quarantined_series",
                                    "Series that are held back now since they would spoil a push, by reason.");
  Counter& scrapes = One(registry, BuildCounter(), "persia_agent_scrapes_total", "Requests for /metrics that were answered.");
  prometheus::Family<Counter>* fifo_lines = nullptr;
  Counter& events_lost = One(registry, BuildCounter(), "persia_agent_event_records_lost_total",
                             "Event records that were overwritten before the agent read them; their counts are not lost.");
  Counter& log_suppressed = One(registry, BuildCounter(), "persia_agent_log_lines_suppressed_total",
                                "Lines left out of the log since their event had too many.");
  Counter& records_skipped =
      One(registry, BuildCounter(), "persia_agent_segment_records_skipped_total",
          "Records in workers' segments of a kind that this agent does not know: those workers use a newer library.");

  std::mutex mutex;
  std::map<std::string, Gateway> gateways;  // guarded by mutex
};

// Of all targets, made with the first.
struct OwnMetrics::RemoteWriteFamilies {
  explicit RemoteWriteFamilies(prometheus::Registry& registry)
      : samples(Many(registry, BuildCounter(), "persia_agent_remote_write_samples_total",
                     "Samples that a target has taken, stale markers among them.")),
        failed(Many(registry, BuildCounter(), "persia_agent_remote_write_samples_failed_total",
                    "Samples that a target has refused for good (a 4xx), and that were dropped for it.")),
        dropped(
            Many(registry, BuildCounter(), "persia_agent_remote_write_samples_dropped_total",
                 "Samples that were dropped and not sent, by reason: queue_bytes and queue_age (the oldest of a full queue), "
                 "disk_full, corrupt (damaged on disk), behind (the agent could not keep up), duplicate (after "
                 "relabelling), ends (markers of series that ended, too many for a disk that is full), not_open (the "
                 "target's queue cannot be had).")),
        retries(Many(registry, BuildCounter(), "persia_agent_remote_write_retries_total",
                     "Requests that were sent again, since the one before had no answer, 429 or 5xx.")),
        bytes(Many(registry, BuildCounter(), "persia_agent_remote_write_bytes_total",
                   "Bytes of request bodies sent to a target, after compression, repeated ones included.")),
        damaged(Many(registry, BuildCounter(), "persia_agent_remote_write_queue_damaged_total",
                     "Places in a target's queue on disk that were damaged and left out.")),
        pending_samples(Many(registry, BuildGauge(), "persia_agent_remote_write_pending_samples",
                             "Samples that wait on disk for a target.")),
        pending_bytes(Many(registry, BuildGauge(), "persia_agent_remote_write_pending_bytes",
                           "Bytes of the request bodies that wait on disk for a target.")),
        queue_bytes(Many(registry, BuildGauge(), "persia_agent_remote_write_queue_bytes",
                         "Bytes of a target's queue on disk, with what was sent and is not removed yet.")),
        shards(Many(registry, BuildGauge(), "persia_agent_remote_write_shards",
                    "Requests that may be under way to a target at once.")),
        highest_sent(Many(registry, BuildGauge(), "persia_agent_remote_write_highest_sent_timestamp_seconds",
                          "Time of the newest sample that a target has taken, in seconds since 1970; 0 before the first.")),
        oldest_pending(Many(registry, BuildGauge(), "persia_agent_remote_write_oldest_pending_timestamp_seconds",
                            "Time of the oldest sample that waits for a target, in seconds since 1970; now, while none "
                            "waits.")) {}

  Family<Counter>& samples;
  Family<Counter>& failed;
  Family<Counter>& dropped;
  Family<Counter>& retries;
  Family<Counter>& bytes;
  Family<Counter>& damaged;
  Family<Gauge>& pending_samples;
  Family<Gauge>& pending_bytes;
  Family<Gauge>& queue_bytes;
  Family<Gauge>& shards;
  Family<Gauge>& highest_sent;
  Family<Gauge>& oldest_pending;
  std::set<std::string> shown;  // targets that have gauges
};

OwnMetrics::OwnMetrics(Options options) : registry_(std::make_unique<Registry>(std::move(options))) {}
OwnMetrics::~OwnMetrics() = default;

Result<std::shared_ptr<const Snapshot>> OwnMetrics::Collect() { return registry_->source.Collect(); }

void OwnMetrics::AddGateway(std::string_view gateway) { registry_->GatewayOf(std::string(gateway)); }
void OwnMetrics::GatewayLookedUp(bool good) { registry_->lookups.Add({{"result", good ? "success" : "failure"}}).Increment(); }
void OwnMetrics::GatewayIdle(std::string_view gateway) { registry_->Idle(std::string(gateway)); }
void OwnMetrics::RetireGateway(std::string_view gateway) { registry_->Retire(std::string(gateway)); }
void OwnMetrics::PushDone(std::string_view gateway, std::string_view result, double seconds, uint64_t bytes) {
  registry_->PushDone(std::string(gateway), std::string(result), seconds, bytes);
}
void OwnMetrics::SetGroups(uint64_t groups) { registry_->groups.Set(static_cast<double>(groups)); }
void OwnMetrics::GroupsDeleted(uint64_t groups) { registry_->groups_deleted.Increment(static_cast<double>(groups)); }
void OwnMetrics::SetIdentityConflicts(uint64_t identities) {
  registry_->identity_conflicts.Set(static_cast<double>(identities));
}
void OwnMetrics::TickSkipped(uint64_t ticks) { registry_->ticks_skipped.Increment(static_cast<double>(ticks)); }

void OwnMetrics::ConfigReloaded(bool good) { registry_->ConfigReloaded(good); }

void OwnMetrics::CollectDone(double seconds) { registry_->collect_duration.Observe(seconds); }
void OwnMetrics::RenderDone(double seconds) { registry_->render_duration.Observe(seconds); }
void OwnMetrics::SetSeries(uint64_t series) { registry_->series.Set(static_cast<double>(series)); }
void OwnMetrics::SetSegments(std::string_view state, uint64_t segments) {
  SetOf(registry_->segments, "state", state, segments);
}
void OwnMetrics::SetSegmentsBroken(uint64_t segments) { registry_->segments_broken.Set(static_cast<double>(segments)); }
void OwnMetrics::SetSegmentsRefused(std::string_view reason, uint64_t segments) {
  SetOf(registry_->segments_refused, "reason", reason, segments);
}
void OwnMetrics::SetRetiredProcesses(uint64_t processes) { RaiseTo(registry_->retired, processes); }
void OwnMetrics::SetRetiredSeriesDropped(uint64_t series) { RaiseTo(registry_->retired_series_dropped, series); }
void OwnMetrics::SetDroppedSeries(std::string_view reason, uint64_t series) {
  SetOf(registry_->dropped, "reason", reason, series);
}
void OwnMetrics::SetQuarantinedSeries(std::string_view reason, uint64_t series) {
  SetOf(registry_->quarantined, "reason", reason, series);
}
void OwnMetrics::ScrapeDone() { registry_->scrapes.Increment(); }
void OwnMetrics::SetLogLinesSuppressed(uint64_t lines) { RaiseTo(registry_->log_suppressed, lines); }
void OwnMetrics::SetEventsLost(uint64_t events) { RaiseTo(registry_->events_lost, events); }
void OwnMetrics::SetFifoLines(uint64_t good, uint64_t bad) {
  if (registry_->fifo_lines == nullptr) {
    registry_->fifo_lines =
        &BuildCounter()
             .Name("persia_agent_fifo_lines_total")
             .Help("Lines that came through the named pipe: good, or bad, of which a part could not be read.")
             .Register(registry_->registry);
  }
  RaiseTo(registry_->fifo_lines->Add({{"result", "good"}}), good);
  RaiseTo(registry_->fifo_lines->Add({{"result", "bad"}}), bad);
}
void OwnMetrics::SetRemoteWrite(const std::string& target, const RemoteWriteCounts& counts) {
  if (remote_write_ == nullptr) remote_write_ = std::make_unique<RemoteWriteFamilies>(registry_->registry);
  RemoteWriteFamilies& of = *remote_write_;
  of.shown.insert(target);
  const prometheus::Labels labels{{"target", target}};
  const auto set = [&](Family<Gauge>& family, double value) { family.Add(labels).Set(value); };
  const auto raise = [&](Family<Counter>& family, uint64_t total) { RaiseTo(family.Add(labels), total); };
  raise(of.samples, counts.samples_sent);
  raise(of.failed, counts.samples_refused);
  raise(of.retries, counts.retries);
  raise(of.bytes, counts.bytes);
  raise(of.damaged, counts.damaged_places);
  set(of.pending_samples, static_cast<double>(counts.pending_samples));
  set(of.pending_bytes, static_cast<double>(counts.pending_bytes));
  set(of.queue_bytes, static_cast<double>(counts.queue_bytes));
  set(of.shards, counts.shards);
  set(of.highest_sent, static_cast<double>(counts.highest_sent_ms) / 1000);
  set(of.oldest_pending, static_cast<double>(counts.oldest_pending_ms) / 1000);
  for (const char* reason : kRemoteWriteDropReasons) {
    const auto dropped = counts.dropped_samples.find(reason);
    RaiseTo(of.dropped.Add({{"target", target}, {"reason", reason}}),
            dropped == counts.dropped_samples.end() ? 0 : dropped->second);
  }
}
void OwnMetrics::KeepRemoteWrite(const std::set<std::string>& targets) {
  if (remote_write_ == nullptr) return;
  RemoteWriteFamilies& of = *remote_write_;
  std::erase_if(of.shown, [&](const std::string& target) {
    if (targets.contains(target)) return false;
    for (Family<Gauge>* family :
         {&of.pending_samples, &of.pending_bytes, &of.queue_bytes, &of.shards, &of.highest_sent, &of.oldest_pending}) {
      family->Remove(&family->Add({{"target", target}}));
    }
    return true;
  });
}
void OwnMetrics::SegmentRecordsSkipped(uint64_t records) { registry_->records_skipped.Increment(static_cast<double>(records)); }

}  // namespace persia::agent
