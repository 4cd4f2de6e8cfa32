// The CPUs that a rank uses, from its processor time in the answers of an agent.
//
// Thread safety: none; one per rank.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "top/job_status.h"

namespace persia::agent {

// The CPU that a rank uses. An agent reads it once per collection, so that the value stands still between two of them.
class CpuUse {
 public:
  std::optional<double> Update(const Rank& rank, const JobStatus& status) {
    if (!rank.cpu_seconds || rank.start_ms != start_ms_) {
      *this = CpuUse();
      start_ms_ = rank.start_ms;
    }
    if (!rank.cpu_seconds) return std::nullopt;
    if (!at_ms_) {
      seconds_ = *rank.cpu_seconds;
      at_ms_ = status.now_ms;
      // The average of its life, until a second value is known.
      if (rank.start_ms && status.now_ms > *rank.start_ms)
        use_ = *rank.cpu_seconds * 1000 / static_cast<double>(status.now_ms - *rank.start_ms);
      return use_;
    }
    const auto elapsed = static_cast<double>(status.now_ms - *at_ms_) / 1000;
    if (elapsed > 0 && (*rank.cpu_seconds != seconds_ || elapsed > 2 * status.push_interval)) {
      use_ = std::max(0.0, *rank.cpu_seconds - seconds_) / elapsed;
      seconds_ = *rank.cpu_seconds;
      at_ms_ = status.now_ms;
    }
    return use_;
  }
  bool seen = false;

 private:
  double seconds_ = 0;
  std::optional<int64_t> at_ms_;
  std::optional<int64_t> start_ms_;
  std::optional<double> use_;
};

}  // namespace persia::agent
