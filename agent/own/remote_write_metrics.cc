#include "own/remote_write_metrics.h"

#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include <vector>

#include "own/registration.h"

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

}  // namespace

struct RemoteWriteMetrics::Families {
  explicit Families(prometheus::Registry& registry)
      : samples(RegisterFamily(registry, BuildCounter(), "persia_agent_remote_write_samples_total",
                               "Samples that a target accepted, stale markers included.")),
        failed(RegisterFamily(registry, BuildCounter(), "persia_agent_remote_write_samples_failed_total",
                              "Samples that were dropped because a target rejected them, by status.")),
        requests(RegisterFamily(registry, BuildCounter(), "persia_agent_remote_write_requests_total",
                                "Requests to a target, by status; \"none\": there was no response.")),
        durations(RegisterFamily(registry, BuildHistogram(), "persia_agent_remote_write_request_duration_seconds",
                                 "Time of one request to a target, with its response.")),
        dropped(RegisterFamily(
            registry, BuildCounter(), "persia_agent_remote_write_samples_dropped_total",
            "Samples that were dropped and not sent, by reason: queue_bytes (the queue is full), queue_age (too old), "
            "disk_full, corrupt (damaged on disk), behind (the agent could not keep up), duplicate (after relabelling), "
            "ends (stale markers, while the disk is full), not_open (the agent cannot open a queue for the target).")),
        retries(RegisterFamily(registry, BuildCounter(), "persia_agent_remote_write_retries_total",
                               "Requests that were sent again because the target had not accepted them.")),
        bytes(RegisterFamily(registry, BuildCounter(), "persia_agent_remote_write_bytes_total",
                             "Bytes of request bodies sent to a target, after compression, retries included.")),
        damaged(RegisterFamily(registry, BuildCounter(), "persia_agent_remote_write_queue_damaged_total",
                               "Damaged places in a target's disk queue that were skipped.")),
        metadata(RegisterFamily(registry, BuildCounter(), "persia_agent_remote_write_metadata_total",
                                "Families whose type, unit and help text a target accepted.")),
        metadata_failed(RegisterFamily(registry, BuildCounter(), "persia_agent_remote_write_metadata_failed_total",
                                       "Families whose type, unit and help text a target did not accept.")),
        pending_samples(RegisterFamily(registry, BuildGauge(), "persia_agent_remote_write_pending_samples",
                                       "Samples in a target's disk queue that are not sent yet.")),
        pending_bytes(RegisterFamily(registry, BuildGauge(), "persia_agent_remote_write_pending_bytes",
                                     "Bytes of the request bodies in a target's disk queue that are not sent yet.")),
        queue_bytes(RegisterFamily(registry, BuildGauge(), "persia_agent_remote_write_queue_bytes",
                                   "Size of a target's disk queue, with requests that are sent and not deleted yet.")),
        queue_max_bytes(RegisterFamily(registry, BuildGauge(), "persia_agent_remote_write_queue_max_bytes",
                                       "Size limit of a target's disk queue; above it, the oldest samples are dropped.")),
        shards(RegisterFamily(registry, BuildGauge(), "persia_agent_remote_write_shards",
                              "Upper bound of concurrent requests to a target.")),
        highest_sent(RegisterFamily(
            registry, BuildGauge(), "persia_agent_remote_write_highest_sent_timestamp_seconds",
            "Timestamp of the newest sample that a target accepted, in seconds since 1970; 0 before the first.")),
        oldest_pending(RegisterFamily(
            registry, BuildGauge(), "persia_agent_remote_write_oldest_pending_timestamp_seconds",
            "Timestamp of the oldest sample that waits for a target, in seconds since 1970; the current time if none waits.")) {
  }

  Family<Counter>& samples;
  Family<Counter>& failed;
  Family<Counter>& requests;
  Family<Histogram>& durations;
  Family<Counter>& dropped;
  Family<Counter>& retries;
  Family<Counter>& bytes;
  Family<Counter>& damaged;
  Family<Counter>& metadata;
  Family<Counter>& metadata_failed;
  Family<Gauge>& pending_samples;
  Family<Gauge>& pending_bytes;
  Family<Gauge>& queue_bytes;
  Family<Gauge>& queue_max_bytes;
  Family<Gauge>& shards;
  Family<Gauge>& highest_sent;
  Family<Gauge>& oldest_pending;
};

RemoteWriteMetrics::RemoteWriteMetrics(prometheus::Registry& registry) : families_(std::make_unique<Families>(registry)) {}
RemoteWriteMetrics::~RemoteWriteMetrics() = default;

void RemoteWriteMetrics::Set(const std::string& target, const RemoteWriteCounts& counts) {
  Families& of = *families_;
  targets_.insert(target);
  const prometheus::Labels labels{{"target", target}};
  const auto set = [&](Family<Gauge>& family, double value) { family.Add(labels).Set(value); };
  const auto raise = [&](Family<Counter>& family, uint64_t total) { RaiseTo(family.Add(labels), total); };
  raise(of.samples, counts.samples_sent);
  for (const auto& [status, samples] : counts.samples_refused)
    RaiseTo(of.failed.Add({{"target", target}, {"status", std::to_string(status)}}), samples);
  for (const auto& [status, requests] : counts.requests)
    RaiseTo(of.requests.Add({{"target", target}, {"status", status == 0 ? "none" : std::to_string(status)}}), requests);
  DurationCounts& before = observed_[target];
  if (counts.request_durations.sum < before.sum) before = {};  // the target was removed for a while
  std::vector<double> increments;
  for (size_t i = 0; i < before.counts.size(); ++i)
    increments.push_back(static_cast<double>(counts.request_durations.counts[i] - before.counts[i]));
  of.durations.Add(labels, kRequestSeconds).ObserveMultiple(increments, counts.request_durations.sum - before.sum);
  before = counts.request_durations;
  raise(of.retries, counts.retries);
  raise(of.bytes, counts.bytes);
  raise(of.damaged, counts.damaged_places);
  raise(of.metadata, counts.metadata_sent);
  raise(of.metadata_failed, counts.metadata_failed);
  set(of.pending_samples, static_cast<double>(counts.pending_samples));
  set(of.pending_bytes, static_cast<double>(counts.pending_bytes));
  set(of.queue_bytes, static_cast<double>(counts.queue_bytes));
  set(of.queue_max_bytes, static_cast<double>(counts.queue_max_bytes));
  set(of.shards, counts.shards);
  set(of.highest_sent, static_cast<double>(counts.highest_sent_ms) / 1000);
  set(of.oldest_pending, static_cast<double>(counts.oldest_pending_ms) / 1000);
  for (const char* reason : kDropReasons) {
    const auto dropped = counts.dropped_samples.find(reason);
    RaiseTo(of.dropped.Add({{"target", target}, {"reason", reason}}),
            dropped == counts.dropped_samples.end() ? 0 : dropped->second);
  }
}

void RemoteWriteMetrics::Keep(const std::set<std::string>& targets) {
  Families& of = *families_;
  std::erase_if(targets_, [&](const std::string& target) {
    if (targets.contains(target)) return false;
    for (Family<Gauge>* family : {&of.pending_samples, &of.pending_bytes, &of.queue_bytes, &of.queue_max_bytes, &of.shards,
                                  &of.highest_sent, &of.oldest_pending})
      family->Remove(&family->Add({{"target", target}}));
    return true;
  });
}

}  // namespace persia::agent
