#include "own/remote_write_metrics.h"

#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "own/registry_source.h"

namespace persia::agent {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

const Histogram::BucketBoundaries kRequestSeconds(DurationCounts::kBounds.begin(), DurationCounts::kBounds.end());
constexpr const char* kDropReasons[] = {"queue_bytes", "queue_age", "disk_full", "corrupt",
                                        "behind",      "duplicate", "ends",      "not_open"};

double SecondsOf(int64_t milliseconds) { return static_cast<double>(milliseconds) / 1000; }

double NowSeconds() { return SecondsOf(std::chrono::system_clock::now().time_since_epoch() / std::chrono::milliseconds(1)); }

// A metric with one series a target.
struct RemoteTotal {
  const char* name;
  uint64_t RemoteWriteCounts::*value;
  const char* help;
};
struct RemoteGauge {
  const char* name;
  double (*value)(const RemoteWriteCounts& counts);
  const char* help;
};

using Counts = RemoteWriteCounts;
constexpr RemoteTotal kRemoteTotals[] = {
    {"persia_agent_remote_write_samples_total", &Counts::samples_sent,
     "Samples that a target accepted, stale markers included."},
    {"persia_agent_remote_write_retries_total", &Counts::retries,
     "Requests that were sent again because the target had not accepted them."},
    {"persia_agent_remote_write_bytes_total", &Counts::bytes,
     "Bytes of request bodies sent to a target, after compression, retries included."},
    {"persia_agent_remote_write_queue_damaged_total", &Counts::damaged_places,
     "Damaged places in a target's disk queue that were skipped."},
    {"persia_agent_remote_write_metadata_total", &Counts::metadata_sent,
     "Families whose type, unit and help text a target accepted."},
    {"persia_agent_remote_write_metadata_failed_total", &Counts::metadata_failed,
     "Families whose type, unit and help text a target did not accept."},
};
constexpr RemoteGauge kRemoteGauges[] = {
    {"persia_agent_remote_write_pending_samples", [](const Counts& of) { return static_cast<double>(of.pending_samples); },
     "Samples in a target's disk queue that are not sent yet."},
    {"persia_agent_remote_write_pending_bytes", [](const Counts& of) { return static_cast<double>(of.pending_bytes); },
     "Bytes of the requests in a target's disk queue that are not sent yet."},
    {"persia_agent_remote_write_queue_bytes", [](const Counts& of) { return static_cast<double>(of.queue_bytes); },
     "Size of a target's disk queue, with the newest request that is sent."},
    {"persia_agent_remote_write_queue_max_bytes", [](const Counts& of) { return static_cast<double>(of.queue_max_bytes); },
     "Size limit of a target's disk queue; above it, the oldest samples are dropped."},
    {"persia_agent_remote_write_highest_sent_timestamp_seconds", [](const Counts& of) { return SecondsOf(of.highest_sent_ms); },
     "Timestamp of the newest sample that a target accepted, in seconds since 1970; 0 before the first."},
    {"persia_agent_remote_write_oldest_pending_timestamp_seconds",
     [](const Counts& of) { return of.oldest_pending_ms ? SecondsOf(*of.oldest_pending_ms) : NowSeconds(); },
     "Timestamp of the oldest sample that waits for a target, in seconds since 1970; the current time if none waits."},
};

}  // namespace

struct RemoteWriteMetrics::Families {
  explicit Families(prometheus::Registry& registry)
      : failed(RegisterFamily(registry, BuildCounter(), "persia_agent_remote_write_samples_failed_total",
                              "Samples that were dropped because a target rejected them, by status.")),
        requests(RegisterFamily(registry, BuildCounter(), "persia_agent_remote_write_requests_total",
                                "Requests to a target, by status; \"none\": there was no response.")),
        durations(RegisterFamily(registry, BuildHistogram(), "persia_agent_remote_write_request_duration_seconds",
                                 "Time of one request to a target, with its response.")),
        dropped(RegisterFamily(
            registry, BuildCounter(), "persia_agent_remote_write_samples_dropped_total",
            "Samples that were dropped and not sent, by reason: queue_bytes (the queue is full), queue_age (too old), "
            "disk_full, corrupt (damaged on disk), behind (the agent could not keep up), duplicate (after relabelling), "
            "ends (stale markers, while the disk is full), not_open (the agent cannot open a queue for the target).")) {
    for (const RemoteTotal& total : kRemoteTotals)
      totals.push_back(&RegisterFamily(registry, BuildCounter(), total.name, total.help));
    for (const RemoteGauge& gauge : kRemoteGauges)
      gauges.push_back(&RegisterFamily(registry, BuildGauge(), gauge.name, gauge.help));
  }

  Family<Counter>& failed;
  Family<Counter>& requests;
  Family<Histogram>& durations;
  Family<Counter>& dropped;
  std::vector<Family<Counter>*> totals;  // of kRemoteTotals
  std::vector<Family<Gauge>*> gauges;    // of kRemoteGauges
};

RemoteWriteMetrics::RemoteWriteMetrics(prometheus::Registry& registry) : families_(std::make_unique<Families>(registry)) {}
RemoteWriteMetrics::~RemoteWriteMetrics() = default;

void RemoteWriteMetrics::Set(const std::map<std::string, RemoteWriteCounts>& targets) {
  std::erase_if(targets_, [&](const std::string& target) {
    if (targets.contains(target)) return false;
    for (Family<Gauge>* family : families_->gauges) family->Remove(&family->Add({{"target", target}}));
    return true;
  });
  for (const auto& [target, counts] : targets) Set(target, counts);
}

void RemoteWriteMetrics::Set(const std::string& target, const RemoteWriteCounts& counts) {
  Families& of = *families_;
  targets_.insert(target);
  const prometheus::Labels labels{{"target", target}};
  for (size_t i = 0; i < of.totals.size(); ++i) RaiseTo(of.totals[i]->Add(labels), counts.*kRemoteTotals[i].value);
  for (size_t i = 0; i < of.gauges.size(); ++i) of.gauges[i]->Add(labels).Set(kRemoteGauges[i].value(counts));
  // A counter that exists before its first event shows the event to rate().
  std::map<int, uint64_t> refused = counts.samples_refused;
  for (const int status : RemoteWriteCounts::kFinalStatuses) refused.try_emplace(status, 0);
  for (const auto& [status, samples] : refused)
    RaiseTo(of.failed.Add({{"target", target}, {"status", std::to_string(status)}}), samples);
  for (const auto& [status, requests] : counts.requests)
    RaiseTo(of.requests.Add({{"target", target}, {"status", status == 0 ? "none" : std::to_string(status)}}), requests);
  for (const char* reason : kDropReasons) {
    const auto dropped = counts.dropped_samples.find(reason);
    RaiseTo(of.dropped.Add({{"target", target}, {"reason", reason}}),
            dropped == counts.dropped_samples.end() ? 0 : dropped->second);
  }
  DurationCounts& before = observed_[target];
  if (counts.request_durations.sum < before.sum) before = {};  // the target was removed for a while
  std::vector<double> increments;
  for (size_t i = 0; i < before.counts.size(); ++i)
    increments.push_back(static_cast<double>(counts.request_durations.counts[i] - before.counts[i]));
  of.durations.Add(labels, kRequestSeconds).ObserveMultiple(increments, counts.request_durations.sum - before.sum);
  before = counts.request_durations;
}

}  // namespace persia::agent
