// The cost of a worker's start: prints the milliseconds that Init and 100 instruments take, in a separate process as a worker
// is. PERSIA_METRICS_DIR names the job's directory.
#include <chrono>
#include <cstdio>
#include <string>

#include "persia/metrics/metrics.h"

int main() {
  using namespace persia::metrics;
  const auto began = std::chrono::steady_clock::now();
  if (!Init().exporting) {
    std::fputs("bench_start: PERSIA_METRICS_DIR names no directory for segments\n", stderr);
    return 2;
  }
  for (int i = 0; i < 25; ++i) {
    const std::string number = std::to_string(i);
    Counter("my_app", "batches_" + number, {.help = "Batches trained."}).Increment();
    Gauge("my_app", "loss_" + number, {.help = "Of the last batch."}).Set(0.5);
    Histogram("my_app", "step_seconds_" + number, DefaultSecondsBounds(), {.help = "A step."}).Observe(0.5);
    Stream("my_app", "latency_" + number).Add(0.5);
  }
  std::printf("%.4f\n", std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count());
}
