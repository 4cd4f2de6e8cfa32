#include "own/own_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/mutex.h"
#include "kernel/proc_reader.h"
#include "own/registry_source.h"
#include "segment_format.h"

namespace persia::agent {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

const Histogram::BucketBoundaries kPushSeconds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};
// Of collecting and rendering.
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
constexpr const char* kStates[] = {"live", "ended", "other_run"};
constexpr const char* kQuarantines[] = {"collision", "definition", "gateway"};
constexpr const char* kLimits[] = {"families", "label_value_bytes", "max_series", "max_series_per_instance", "push_bytes"};
constexpr const char* kRefusals[] = {"access", "corrupt", "duplicate", "magic", "owner", "size", "type", "version"};

Histogram& RegisterWorkSeconds(prometheus::Registry& registry, const char* name, const char* help) {
  return RegisterFamily(registry, BuildHistogram(), name, help).Add({}, kWorkSeconds);
}

// Sets the gauge with this one label.
void SetGauge(Family<Gauge>& family, const char* label, std::string_view value, uint64_t to) {
  family.Add({{label, std::string(value)}}).Set(static_cast<double>(to));
}
}  // namespace

struct OwnMetrics::Registry {
  explicit Registry(Options options) : now(std::move(options.now)), source(registry, std::move(options.identity)) {
    BuildGauge()
        .Name("persia_agent_build_info")
        .Help("1. The labels describe the build of the agent.")
        .Register(registry)
        .Add({{"version", options.version}, {"compiler", kCompiler}, {"segment_version", kSegmentVersion}})
        .Set(1);
    for (const char* state : kStates) SetGauge(segments, "state", state, 0);
    for (const char* reason : kRefusals) SetGauge(segments_refused, "reason", reason, 0);
    for (const char* reason : kQuarantines) SetGauge(quarantined, "reason", reason, 0);
    for (const char* limit : kLimits) SetGauge(dropped, "reason", limit, 0);
    for (const char* result : {"success", "failure"}) reloads.Add({{"result", result}});
    SetReloaded(true);
  }

  struct Gateway {
    Histogram& duration;
    Counter& bytes;
    Gauge& consecutive_failures;
  };

  Gateway& GatewayOf(const std::string& name) {
    const MutexLock lock(mutex);
    const auto known = gateways.find(name);
    if (known != gateways.end()) return known->second;
    for (const char* result : kPushResults) pushes.Add({{"gateway", name}, {"result", result}});
    const prometheus::Labels labels{{"gateway", name}};
    return gateways
        .emplace(name,
                 Gateway{push_duration.Add(labels, kPushSeconds), push_bytes.Add(labels), consecutive_failures.Add(labels)})
        .first->second;
  }

  void Retire(const std::string& gateway) {
    last_success.Remove(&last_success.Add({{"gateway", gateway}}));
    consecutive_failures.Remove(&GatewayOf(gateway).consecutive_failures);
    const MutexLock lock(mutex);
    gateways.erase(gateway);
  }

  void ConfigReloaded(bool good) {
    reloads.Add({{"result", good ? "success" : "failure"}}).Increment();
    SetReloaded(good);
  }
  // Also called at startup, which is not a reload.
  void SetReloaded(bool good) {
    last_reload_successful.Set(good ? 1 : 0);
    if (good) last_reload_success.Set(std::chrono::duration<double>(now().time_since_epoch()).count());
  }

  void PushDone(const std::string& gateway, const std::string& result, double seconds, uint64_t bytes) {
    Gateway& series = GatewayOf(gateway);
    pushes.Add({{"gateway", gateway}, {"result", result}}).Increment();
    if (result == "deferred") return;  // no push was made
    series.duration.Observe(seconds);
    series.bytes.Increment(static_cast<double>(bytes));
    if (result != kPushResults[0]) {
      series.consecutive_failures.Increment();
      return;
    }
    series.consecutive_failures.Set(0);
    last_success.Add({{"gateway", gateway}}).Set(std::chrono::duration<double>(now().time_since_epoch()).count());
  }

  // Values that /proc does not have stay as they are.
  void ReadProcess() {
    if (const auto stat = proc.Stat("self")) cpu.Increment(std::max(0.0, stat->cpu_seconds - cpu.Value()));
    if (const auto memory = proc.Memory("self")) resident.Set(memory->resident_bytes);
  }

  const std::function<std::chrono::system_clock::time_point()> now;
  ProcReader proc;
  prometheus::Registry registry;
  RegistrySource source;

  Family<Counter>& reloads =
      RegisterFamily(registry, BuildCounter(), "persia_agent_config_reloads_total",
                     "Reloads of the settings, by result: success, or failure, after which the previous settings stay in use.");
  Gauge& last_reload_successful = RegisterMetric(registry, BuildGauge(), "persia_agent_config_last_reload_successful",
                                                 "1 if the settings were valid when they were last read, else 0.");
  Gauge& last_reload_success =
      RegisterMetric(registry, BuildGauge(), "persia_agent_config_last_reload_success_timestamp_seconds",
                     "When the settings in use were read, in seconds since 1970.");
  Gauge& config_errors = RegisterMetric(registry, BuildGauge(), "persia_agent_config_errors",
                                        "Errors in the settings when they were last read. At the start, a wrong setting falls "
                                        "back to its default; an error in a setting that decides where data goes switches off "
                                        "that output.");
  Family<Counter>& pushes = RegisterFamily(
      registry, BuildCounter(), "persia_agent_pushes_total",
      "Pushes of all groups to a gateway, by result: success, rejected (a 4xx), server_error (429 or 5xx), unreachable, "
      "interrupted, or deferred (not made because of the gateway's Retry-After).");
  Family<Histogram>& push_duration =
      RegisterFamily(registry, BuildHistogram(), "persia_agent_push_duration_seconds",
                     "Time from the first request of a push to the last response, with retries and waits.");
  Family<Counter>& push_bytes = RegisterFamily(registry, BuildCounter(), "persia_agent_push_bytes_total",
                                               "Bytes of request bodies sent to a gateway, after compression.");
  Family<Gauge>& consecutive_failures = RegisterFamily(registry, BuildGauge(), "persia_agent_push_consecutive_failures",
                                                       "Failed pushes to a gateway since the last successful one.");
  Family<Gauge>& last_success =
      RegisterFamily(registry, BuildGauge(), "persia_agent_last_push_success_timestamp_seconds",
                     "When all groups were last pushed to a gateway successfully, in seconds since 1970.");
  Family<Gauge>& segments_refused = RegisterFamily(registry, BuildGauge(), "persia_agent_segments_refused",
                                                   "Segments in the job's directory that are not read, by reason.");
  Gauge& groups = RegisterMetric(registry, BuildGauge(), "persia_agent_groups",
                                 "Groups on gateways that this agent may have created and has not deleted, by its ledger.");
  Counter& groups_deleted =
      RegisterMetric(registry, BuildCounter(), "persia_agent_groups_deleted_total",
                     "Groups that this agent deleted from a gateway because nothing pushes them any more.");
  Gauge& identity_conflicts = RegisterMetric(
      registry, BuildGauge(), "persia_agent_identity_conflicts",
      "1 if another agent of this host has the identity of this one, whose series therefore have a label agent.");
  Counter& ticks_skipped =
      RegisterMetric(registry, BuildCounter(), "persia_agent_ticks_skipped_total",
                     "Push intervals skipped because the previous collection took longer than an interval.");
  Histogram& collect_duration =
      RegisterWorkSeconds(registry, "persia_agent_collect_duration_seconds", "Time to read and merge all sources.");
  Histogram& render_duration =
      RegisterWorkSeconds(registry, "persia_agent_render_duration_seconds", "Time to write the exposition text for a scrape.");
  Gauge& series = RegisterMetric(registry, BuildGauge(), "persia_agent_series", "Series of the last collection.");
  Gauge& max_series =
      RegisterMetric(registry, BuildGauge(), "persia_agent_max_series", "Limit for exposed series; further ones are left out.");
  Counter& cpu = RegisterMetric(registry, BuildCounter(), "persia_agent_cpu_seconds_total",
                                "User and system processor time of the agent.");
  Gauge& resident =
      RegisterMetric(registry, BuildGauge(), "persia_agent_resident_memory_bytes", "Resident memory of the agent.");
  Family<Gauge>& segments =
      RegisterFamily(registry, BuildGauge(), "persia_agent_segments",
                     "Segments in the job's directory, by state: live, ended (the process has ended, its values "
                     "are still read from the segment), other_run (ignored), orphaned (the segment cannot be read; "
                     "the values that the state has of it count).");
  Gauge& segments_broken = RegisterMetric(registry, BuildGauge(), "persia_agent_segments_broken",
                                          "Segments that became unreadable: their last good values are exposed.");
  Counter& retired = RegisterMetric(registry, BuildCounter(), "persia_agent_retired_processes_total",
                                    "Ended processes of this run whose values are in the agent's state.");
  Counter& retired_series_dropped =
      RegisterMetric(registry, BuildCounter(), "persia_agent_retired_series_dropped_total",
                     "Series of ended processes whose values were dropped because of the limits on series.");
  Gauge& state_behind =
      RegisterMetric(registry, BuildGauge(), "persia_agent_state_unsaved_seconds",
                     "For how long the oldest change that is not on disk has been waiting; 0: the state is on disk.");
  Gauge& state_bytes = RegisterMetric(registry, BuildGauge(), "persia_agent_state_bytes", "Size of the state file.");
  Counter& state_written =
      RegisterMetric(registry, BuildCounter(), "persia_agent_state_written_bytes_total", "Bytes written to the state file.");
  Counter& state_errors =
      RegisterMetric(registry, BuildCounter(), "persia_agent_state_errors_total", "Writes of the state file that failed.");
  Family<Gauge>& dropped = RegisterFamily(registry, BuildGauge(), "persia_agent_dropped_series",
                                          "Series of workers that are not exposed now, by the limit that they exceed.");
  Family<Gauge>& quarantined =
      RegisterFamily(registry, BuildGauge(), "persia_agent_quarantined_series",
                     "Series that are not pushed now because the gateway would refuse them, by reason.");
  Counter& scrapes =
      RegisterMetric(registry, BuildCounter(), "persia_agent_scrapes_total", "Requests for /metrics that were answered.");
  prometheus::Family<Counter>* fifo_lines = nullptr;
  Counter& events_lost =
      RegisterMetric(registry, BuildCounter(), "persia_agent_event_records_lost_total",
                     "Event records overwritten before the agent read them; persia_events_total still counts them.");
  Family<Counter>& log_lines = RegisterFamily(registry, BuildCounter(), "persia_agent_log_lines_total",
                                              "Lines that the agent wrote to its log, by level.");
  Counter& log_suppressed = RegisterMetric(registry, BuildCounter(), "persia_agent_log_lines_suppressed_total",
                                           "Log lines suppressed by the limit on lines per event.");
  Counter& records_skipped = RegisterMetric(
      registry, BuildCounter(), "persia_agent_segment_records_skipped_total",
      "Segment records that are left out: of a kind that this agent does not know, or beyond a limit of the format.");

  Mutex mutex;
  std::map<std::string, Gateway> gateways PERSIA_GUARDED_BY(mutex);
};

OwnMetrics::OwnMetrics(Options options) : registry_(std::make_unique<Registry>(std::move(options))) {}
OwnMetrics::~OwnMetrics() = default;

std::shared_ptr<const Snapshot> OwnMetrics::Collect() {
  registry_->ReadProcess();
  return registry_->source.Collect();
}

void OwnMetrics::AddGateway(std::string_view gateway) { registry_->GatewayOf(std::string(gateway)); }
void OwnMetrics::RetireGateway(std::string_view gateway) { registry_->Retire(std::string(gateway)); }
void OwnMetrics::PushDone(std::string_view gateway, std::string_view result, double seconds, uint64_t bytes) {
  registry_->PushDone(std::string(gateway), std::string(result), seconds, bytes);
}
void OwnMetrics::SetGroups(uint64_t groups) { registry_->groups.Set(static_cast<double>(groups)); }
void OwnMetrics::GroupsDeleted(uint64_t groups) { registry_->groups_deleted.Increment(static_cast<double>(groups)); }
void OwnMetrics::SetIdentityConflict(bool conflict) { registry_->identity_conflicts.Set(conflict ? 1 : 0); }
void OwnMetrics::TickSkipped(uint64_t ticks) { registry_->ticks_skipped.Increment(static_cast<double>(ticks)); }

void OwnMetrics::ConfigReloaded(bool good, uint64_t errors) {
  registry_->ConfigReloaded(good);
  SetConfigErrors(errors);
}
void OwnMetrics::SetConfigErrors(uint64_t errors) { registry_->config_errors.Set(static_cast<double>(errors)); }

void OwnMetrics::CollectDone(double seconds) { registry_->collect_duration.Observe(seconds); }
void OwnMetrics::RenderDone(double seconds) { registry_->render_duration.Observe(seconds); }
void OwnMetrics::SetSeries(uint64_t series, uint64_t limit) {
  registry_->series.Set(static_cast<double>(series));
  registry_->max_series.Set(static_cast<double>(limit));
}
void OwnMetrics::SetSegments(std::string_view state, uint64_t segments) {
  SetGauge(registry_->segments, "state", state, segments);
}
void OwnMetrics::SetSegmentsBroken(uint64_t segments) { registry_->segments_broken.Set(static_cast<double>(segments)); }
void OwnMetrics::SetSegmentsRefused(std::string_view reason, uint64_t segments) {
  SetGauge(registry_->segments_refused, "reason", reason, segments);
}
void OwnMetrics::SetRetiredProcesses(uint64_t processes) { RaiseTo(registry_->retired, processes); }
void OwnMetrics::SetRetiredSeriesDropped(uint64_t series) { RaiseTo(registry_->retired_series_dropped, series); }
void OwnMetrics::SetState(std::chrono::milliseconds behind, uint64_t file_bytes, uint64_t written_bytes, uint64_t errors) {
  registry_->state_behind.Set(std::chrono::duration<double>(behind).count());
  registry_->state_bytes.Set(static_cast<double>(file_bytes));
  RaiseTo(registry_->state_written, written_bytes);
  RaiseTo(registry_->state_errors, errors);
}
void OwnMetrics::SetDroppedSeries(std::string_view reason, uint64_t series) {
  SetGauge(registry_->dropped, "reason", reason, series);
}
void OwnMetrics::SetQuarantinedSeries(std::string_view reason, uint64_t series) {
  SetGauge(registry_->quarantined, "reason", reason, series);
}
void OwnMetrics::ScrapeDone() { registry_->scrapes.Increment(); }
void OwnMetrics::SetLogLines(std::string_view level, uint64_t lines) {
  RaiseTo(registry_->log_lines.Add({{"level", std::string(level)}}), lines);
}
void OwnMetrics::SetLogLinesSuppressed(uint64_t lines) { RaiseTo(registry_->log_suppressed, lines); }
void OwnMetrics::SetEventsLost(uint64_t events) { RaiseTo(registry_->events_lost, events); }
void OwnMetrics::SetFifoLines(uint64_t good, uint64_t bad) {
  if (registry_->fifo_lines == nullptr) {
    registry_->fifo_lines =
        &BuildCounter()
             .Name("persia_agent_fifo_lines_total")
             .Help("Lines read from the named pipe of emit: good, or bad if a part of the line could not be parsed.")
             .Register(registry_->registry);
  }
  RaiseTo(registry_->fifo_lines->Add({{"result", "good"}}), good);
  RaiseTo(registry_->fifo_lines->Add({{"result", "bad"}}), bad);
}
void OwnMetrics::SetRemoteWrite(const std::map<std::string, RemoteWriteCounts>& targets) {
  if (remote_write_ == nullptr && !targets.empty()) remote_write_ = std::make_unique<RemoteWriteMetrics>(registry_->registry);
  if (remote_write_ != nullptr) remote_write_->Set(targets);
}
void OwnMetrics::SegmentRecordsSkipped(uint64_t records) { registry_->records_skipped.Increment(static_cast<double>(records)); }

}  // namespace persia::agent
