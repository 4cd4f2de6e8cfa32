// The agent's metrics of its remote write targets, `persia_agent_remote_write_*`, by the label `target`.
//
// Thread safety: none; the collector thread alone.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/duration_counts.h"

namespace prometheus {
class Registry;
}

namespace persia::agent {

// Totals since the agent's start, and gauges.
struct RemoteWriteCounts {
  uint64_t samples_sent = 0;
  std::map<int, uint64_t> samples_refused{};  // by status
  std::map<int, uint64_t> requests{};         // by status; 0: no answer
  DurationCounts request_durations{};
  uint64_t retries = 0;
  uint64_t bytes = 0;
  uint64_t pending_samples = 0;
  uint64_t pending_bytes = 0;
  uint64_t queue_bytes = 0;
  uint64_t queue_max_bytes = 0;
  uint64_t damaged_places = 0;
  uint32_t shards = 0;
  int64_t highest_sent_ms = 0;
  int64_t oldest_pending_ms = 0;
  std::map<std::string, uint64_t> dropped_samples{};  // by reason
  uint64_t metadata_sent = 0;                         // families
  uint64_t metadata_failed = 0;
};

class RemoteWriteMetrics {
 public:
  explicit RemoteWriteMetrics(prometheus::Registry& registry);
  ~RemoteWriteMetrics();

  void Set(const std::string& target, const RemoteWriteCounts& counts);
  // Removes the gauges of all other targets, which a reload removed.
  void Keep(const std::set<std::string>& targets);

 private:
  struct Families;
  std::unique_ptr<Families> families_;
  std::set<std::string> targets_;                   // with gauges
  std::map<std::string, DurationCounts> observed_;  // what the histogram has, by target
};

}  // namespace persia::agent
