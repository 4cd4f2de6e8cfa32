// Checks random histories, and prints the first wrong one in its shortest form, as a test case. Of the handovers of several
// agents, which take longer, there are fewer.
//
//   model [--histories N] [--seed S]
//
// The seed of a history is its number: S (by default 0) is the first one.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "handover.h"
#include "history.h"

namespace {

using namespace persia::agent::model;

std::atomic<uint64_t> next = 0;
std::atomic<bool> failed = false;

constexpr uint64_t kHistoriesPerHandover = 8;

void CheckHistory(uint64_t seed) {
  const Config config = ConfigOf(seed);
  std::vector<Step> steps = RandomHistory(seed);
  if (Check(steps, config).empty() || failed.exchange(true)) return;
  Shrink(steps, config);
  const auto number = static_cast<unsigned long long>(seed);
  std::printf("history %llu: %s\n%sagain: model --seed %llu --histories 1\n", number, Check(steps, config).c_str(),
              Print(steps, config).c_str(), number);
}

void CheckHandovers(uint64_t seed) {
  const HandoverConfig config = HandoverConfigOf(seed / kHistoriesPerHandover);
  std::vector<Handover> steps = RandomHandovers(seed / kHistoriesPerHandover);
  if (Check(steps, config).empty() || failed.exchange(true)) return;
  Shrink(steps, config);
  const auto number = static_cast<unsigned long long>(seed);
  std::printf("handovers of history %llu: %s\n%sagain: model --seed %llu --histories 1\n", number, Check(steps, config).c_str(),
              Print(steps, config).c_str(), number);
}

void CheckUntil(uint64_t end) {
  for (uint64_t seed = next++; seed < end && !failed; seed = next++) {
    CheckHistory(seed);
    if (seed % kHistoriesPerHandover == 0) CheckHandovers(seed);
  }
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t histories = 100'000;
  uint64_t seed = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    (std::strcmp(argv[i], "--seed") == 0 ? seed : histories) = std::strtoull(argv[i + 1], nullptr, 10);
  }
  next = seed;
  const auto began = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back(CheckUntil, seed + histories);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  if (failed) return 1;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::printf("%llu histories in %.1f s: every count was counted once\n", static_cast<unsigned long long>(histories),
              took.count());
  return 0;
}
