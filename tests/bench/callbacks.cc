// What 10,000 gauges with functions cost a job that does nothing else: prints the processor time of a second, in percent of one
// processor, at the default period of 5 seconds. PERSIA_METRICS_DIR names the job's directory.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <string>
#include <thread>

#include "persia/metrics/callback.h"
#include "persia/metrics/metrics.h"

namespace {

constexpr int kGauges = 10'000;
constexpr int kRounds = 20;
constexpr double kDefaultPeriodSeconds = 5;

double ProcessorSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

}  // namespace

int main() {
  using namespace persia::metrics;
  if (!Init().exporting) {
    std::fputs("bench_callbacks: PERSIA_METRICS_DIR names no directory for segments\n", stderr);
    return 2;
  }
  SetCallbackPeriod(std::chrono::milliseconds(50));
  static std::atomic<int> rounds = 0;
  static std::atomic<double> depth = 0;
  for (int i = 0; i < kGauges; ++i) {
    Gauge("my_app", "queue_" + std::to_string(i), {.help = "Entries that wait."}).SetFunction([i] {
      if (i == 0) ++rounds;
      return depth.load(std::memory_order_relaxed) + i;
    });
  }
  const auto wait_for = [](int round) {
    while (rounds < round) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  };
  wait_for(rounds + 3);  // all functions are known
  const int first = rounds;
  const double before = ProcessorSeconds();
  wait_for(first + kRounds);
  const double of_a_round = (ProcessorSeconds() - before) / (rounds - first);
  std::printf("%.5f\n", 100 * of_a_round / kDefaultPeriodSeconds);
}
