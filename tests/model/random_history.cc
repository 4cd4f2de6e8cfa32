// Histories at random, and the shortest form of one that fails.
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "history.h"
#include "random.h"
#include "shrink.h"

namespace persia::agent::model {
namespace {

constexpr const char* kNames[] = {"kStart",    "kCount", "kSet",  "kRemove", "kPhase",  "kDie",   "kAgent", "kCollect",
                                  "kSoon",     "kStop",  "kKill", "kWait",   "kDisk",   "kState", "kOpen",  "kList",
                                  "kReadOnly", "kBreak", "kLose", "kReturn", "kDamage", "kClock", "kLimit", "kNewRun"};
static_assert(std::size(kNames) == static_cast<size_t>(Do::kLast) + 1);

}  // namespace

Config ConfigOf(uint64_t seed) {
  return {.state_elsewhere = seed % 4 != 0,
          .small_checkpoints = seed / 4 % 2 != 0,
          .hides_ended = seed / 8 % 2 != 0,
          .max_series = seed / 16 % 4 == 0 ? size_t{14} : Config{}.max_series,
          .supervised = seed / 64 % 2 != 0};
}

std::vector<Step> RandomHistory(uint64_t seed) {
  Random random(seed);
  std::vector<Step> steps = {{Do::kAgent, random.Below(2)}, {Do::kStart, random.Below(2)}};
  const uint32_t length = 4 + random.Below(16);
  // Common steps are more frequent.
  constexpr Do kUsual[] = {Do::kWait,  Do::kCollect, Do::kCollect, Do::kCollect, Do::kCollect, Do::kCount,
                           Do::kCount, Do::kSet,     Do::kStart,   Do::kAgent,   Do::kDie};
  // Swarm testing: a history has a few kinds of the other steps, each more often. Half of the histories have one identity.
  std::vector<Do> others = {Do::kSet};
  for (uint32_t what = 0; what <= static_cast<uint32_t>(Do::kLast); ++what) {
    if (random.Below(4) == 0) others.push_back(static_cast<Do>(what));
  }
  const bool one_identity = random.Below(2) == 0;
  for (uint32_t i = 0; i < length; ++i) {
    Step step;
    step.what = random.Below(2) == 0 ? kUsual[random.Below(std::size(kUsual))]
                                     : others[random.Below(static_cast<uint32_t>(others.size()))];
    const bool collects = step.what == Do::kCollect || step.what == Do::kSoon;
    step.b = collects ? random.Below(kCollections) : 1 + random.Below(9);
    constexpr uint32_t kLoads = 40;  // of two or three segments
    step.a = random.Below(collects && step.b >= kFirstAtLoad        ? kLoads
                          : step.what == Do::kCollect               ? 12
                          : step.what == Do::kStart && one_identity ? 2
                                                                    : 6);
    steps.push_back(step);
  }
  return steps;
}

void Shrink(std::vector<Step>& steps, const Config& config) {
  Shrink(steps, [&](const std::vector<Step>& shorter) { return !Check(shorter, config).empty(); });
}

std::string Print(const std::vector<Step>& steps, const Config& config) {
  std::string text = "  EXPECT_EQ(Check({";
  for (const Step& step : steps) {
    text += "{Do::" + std::string(kNames[static_cast<size_t>(step.what)]) + ", " + std::to_string(step.a) + ", " +
            std::to_string(step.b) + "}, ";
  }
  return text + "}, {.state_elsewhere = " + (config.state_elsewhere ? "true" : "false") +
         ", .small_checkpoints = " + (config.small_checkpoints ? "true" : "false") +
         ", .hides_ended = " + (config.hides_ended ? "true" : "false") +
         ", .max_series = " + std::to_string(config.max_series) + ", .supervised = " + (config.supervised ? "true" : "false") +
         "}), \"\");\n";
}

}  // namespace persia::agent::model
