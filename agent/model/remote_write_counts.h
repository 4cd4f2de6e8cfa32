// What the agent counts of one target of remote write. The parts of a target fill in what they know.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/timing.h"

namespace persia::agent {

struct RemoteWriteCounts {
  // The statuses after which a request is dropped.
  static constexpr int kFinalStatuses[] = {400, 409, 413, 422};

  // Totals.
  uint64_t samples_sent = 0;
  uint64_t retries = 0;
  uint64_t bytes = 0;           // of bodies, of all requests
  uint64_t damaged_places = 0;  // in the queue
  uint64_t metadata_sent = 0;   // families
  uint64_t metadata_failed = 0;
  std::map<int, uint64_t> samples_refused{};          // by status; never sent again
  std::map<int, uint64_t> requests{};                 // by status; 0: no answer
  std::map<std::string, uint64_t> dropped_samples{};  // by reason
  DurationCounts request_durations{};
  int64_t highest_sent_ms = 0;

  // Of the queue, now.
  uint64_t pending_records = 0;
  uint64_t pending_samples = 0;
  uint64_t pending_bytes = 0;  // of bodies
  uint64_t queue_bytes = 0;    // of its files
  uint64_t queue_max_bytes = 0;
  std::optional<int64_t> oldest_pending_ms{};

  std::string last_error{};  // of the last request; empty if it succeeded

  void AddTotalsOf(const RemoteWriteCounts& other) {
    samples_sent += other.samples_sent;
    retries += other.retries;
    bytes += other.bytes;
    damaged_places += other.damaged_places;
    metadata_sent += other.metadata_sent;
    metadata_failed += other.metadata_failed;
    for (const auto& [status, samples] : other.samples_refused) samples_refused[status] += samples;
    for (const auto& [status, times] : other.requests) requests[status] += times;
    for (const auto& [reason, samples] : other.dropped_samples) dropped_samples[reason] += samples;
    request_durations.Add(other.request_durations);
    highest_sent_ms = std::max(highest_sent_ms, other.highest_sent_ms);
  }
};

}  // namespace persia::agent
