// Since when a stream has had no new value, for rules that hide it after some time.
//
// A value that is the same as the one before is a new one: it is seen by the count. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "source/merge_input.h"
#include "source/merge_plan.h"

namespace persia::agent {

class StreamAges {
 public:
  // From the next HideOld on. What is known of series that go on is kept.
  void TakePlan(const MergePlan& plan);
  // Marks as absent the series of families with a time to live in which no value came for so long.
  // REQUIRES: `plan` is the one that TakePlan was given last, `inputs` are those of this merge.
  void HideOld(const MergePlan& plan, std::span<const MergeInput> inputs, std::chrono::steady_clock::time_point now,
               std::vector<double>& values);

 private:
  struct Age {
    uint64_t count = 0;
    uint64_t last = 0;  // the bits of the last values, mixed
    std::chrono::steady_clock::time_point since{};
    bool seen = false;
    bool planned = false;
  };
  struct Watched {
    size_t series;  // of the plan's walk
    std::chrono::milliseconds ttl;
    bool gauge;
    Age* age;
  };

  std::map<std::string, Age> ages_;  // by family, identity and labels
  std::vector<Watched> watched_;
};

}  // namespace persia::agent
