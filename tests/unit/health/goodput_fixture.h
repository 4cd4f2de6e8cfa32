// Known processes, and the looks of an agent at them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "health/goodput.h"
#include "health/goodput_world.h"

namespace persia::agent {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Nanoseconds = Goodput::Nanoseconds;
using Seconds = std::map<std::string, double>;

// The buckets that are not empty.
inline Seconds NotEmpty(const BucketTimes& time) {
  Seconds filled;
  for (size_t i = 0; i < kBuckets; ++i) {
    if (time[i].count() != 0)
      filled[std::string(Name(static_cast<Bucket>(i)))] = std::chrono::duration<double>(time[i]).count();
  }
  return filled;
}

class GoodputTest : public ::testing::Test {
 protected:
  KnownProcess& Start(const std::string& id, seconds at) {
    processes_.push_back({.id = id, .pid = static_cast<uint32_t>(processes_.size() + 1), .began = at});
    return processes_.back();
  }
  // A process that reaches step 14, and fails at 10 s.
  void FailAfterStep14() {
    KnownProcess& process = Start("a", seconds(0));
    process.stretches = {{"forward", seconds(0)}};
    process.steps = {{seconds(1), 5}, {seconds(8), 14}};
    process.ended = seconds(10);
    Look(seconds(9));
    Look(seconds(10));
  }
  // All that is there by then; its clocks run until the look before.
  void Look(seconds now, std::optional<Nanoseconds> over_at = {}, std::vector<LateExit> exits = {}) {
    std::vector<Process> read;
    for (KnownProcess& process : processes_) {
      if (process.Recorded() > now || folded_.contains(process.id)) continue;
      read.push_back(process.Read(now, seen_));
      if (change_) change_(read.back());
      if (!read.back().alive) folded_.insert(process.id);
    }
    goodput_.Look(read, {}, exits, {.now = now, .over_at = over_at, .step = step_});
    goodput_.Saved();
    seen_ = now;
  }
  // The next one goes on from what is on the disk.
  void KillAgent() {
    const std::string disk = EncodeGoodput(goodput_.accounts(), kClocks);
    goodput_ = Goodput();
    goodput_.Restore(*DecodeGoodput(disk, kClocks));
  }
  [[nodiscard]] Seconds Buckets(int32_t replica = 0) const {
    return NotEmpty(goodput_.accounts().at({"trainer", replica}).time);
  }
  [[nodiscard]] const RankAccount& Rank() const { return goodput_.accounts().at({"trainer", 0}); }

  std::list<KnownProcess> processes_;
  std::set<std::string> folded_;
  std::function<void(Process&)> change_;
  Nanoseconds seen_{0};
  Nanoseconds step_{0};
  Goodput goodput_;
};

}  // namespace persia::agent
