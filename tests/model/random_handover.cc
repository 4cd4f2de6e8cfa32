// Handovers at random, and the shortest form of one that fails.
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "handover.h"
#include "random.h"
#include "shrink.h"

namespace persia::agent::model {
namespace {

using Does = Handover::Do;

constexpr const char* kNamesOfHandovers[] = {"kExec", "kRun", "kGo", "kCount", "kEnd", "kLeave", "kKill", "kKillAll"};
static_assert(std::size(kNamesOfHandovers) == static_cast<size_t>(Does::kLast) + 1);

}  // namespace

HandoverConfig HandoverConfigOf(uint64_t seed) { return {.has_state_dir = seed % 2 == 1}; }

std::vector<Handover> RandomHandovers(uint64_t seed) {
  Random random(seed);
  std::vector<Handover> steps;
  constexpr Does kUsual[] = {Does::kGo,    Does::kGo,    Does::kGo,    Does::kGo,  Does::kGo,
                             Does::kCount, Does::kCount, Does::kLeave, Does::kExec};
  // A history has one kind of the other steps more often.
  const Does other = static_cast<Does>(random.Below(static_cast<uint32_t>(Does::kLast) + 1));
  const uint32_t length = 10 + random.Below(30);
  const uint32_t places = 2 + random.Below(2);
  for (uint32_t i = 0; i < length; ++i) {
    Handover step;
    step.what = random.Below(5) == 0 ? other : kUsual[random.Below(std::size(kUsual))];
    step.a = random.Below(places);
    step.b = 1 + random.Below(step.what != Does::kGo ? 4 : random.Below(2) == 0 ? 5 : 20);
    if (step.what == Does::kGo && random.Below(2) == 0) step.b = 0;
    steps.push_back(step);
  }
  return steps;
}

void Shrink(std::vector<Handover>& steps, HandoverConfig config) {
  Shrink(steps, [config](const std::vector<Handover>& shorter) { return !Check(shorter, config).empty(); });
}

std::string Print(const std::vector<Handover>& steps, HandoverConfig config) {
  std::string text = "  EXPECT_EQ(Check({";
  for (const Handover& step : steps) {
    text += "{Handover::Do::" + std::string(kNamesOfHandovers[static_cast<size_t>(step.what)]) + ", " + std::to_string(step.a) +
            ", " + std::to_string(step.b) + "}, ";
  }
  return text + "}, {.has_state_dir = " + (config.has_state_dir ? "true" : "false") + "}), \"\");\n";
}

}  // namespace persia::agent::model
