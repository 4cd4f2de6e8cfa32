// The agent's metrics of its remote write targets, `persia_agent_remote_write_*`, by the label `target`.
//
// Thread safety: none; the collector thread alone.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/timing.h"
#include "model/remote_write_counts.h"

namespace prometheus {
class Registry;
}

namespace persia::agent {

class RemoteWriteMetrics {
 public:
  explicit RemoteWriteMetrics(prometheus::Registry& registry);
  ~RemoteWriteMetrics();

  // By target. Removes the gauges of all other targets.
  void Set(const std::map<std::string, RemoteWriteCounts>& targets);

 private:
  struct Families;
  void Set(const std::string& target, const RemoteWriteCounts& counts);

  std::unique_ptr<Families> families_;
  std::set<std::string> targets_;                   // with gauges
  std::map<std::string, DurationCounts> observed_;  // what the histogram has, by target
};

}  // namespace persia::agent
