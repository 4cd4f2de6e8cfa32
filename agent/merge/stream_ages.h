// Hides the series of streams without a new value for the time to live that a rule sets.
//
// A value equal to the one before is a new value: the stream's count changes. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "exposure/exposure_plan.h"
#include "segment/measurements.h"

namespace persia::agent {

class StreamAges {
 public:
  // For the next HideExpired. Keeps the ages of series that stay in the plan.
  void SetPlan(const ExposurePlan& plan);
  // Marks expired series as absent in `values`.
  // REQUIRES: `plan` is that of the last SetPlan, `inputs` are those of this merge.
  void HideExpired(const ExposurePlan& plan, std::span<const Measurements> inputs, std::chrono::steady_clock::time_point now,
                   std::vector<double>& values);

 private:
  struct Age {
    uint64_t count = 0;
    uint64_t last = 0;  // a hash of the last values of all parts
    std::chrono::steady_clock::time_point since{};
    bool seen = false;
    bool planned = false;
  };
  struct ExpiringSeries {
    size_t series;  // its index in the plan
    std::chrono::milliseconds ttl;
    bool gauge;
    Age* age;
  };

  std::map<std::string, Age> ages_;  // by family, identity and labels
  std::vector<ExpiringSeries> expiring_;
};

}  // namespace persia::agent
