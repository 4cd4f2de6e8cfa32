#include <persia/metrics/metrics.h>

#include <chrono>
#include <thread>

int main() {
  persia::metrics::Init({.job_name = "quickstart", .role = "trainer"});
  persia::metrics::Counter batches("my_app", "batches_total", {.help = "Batches trained."});
  persia::metrics::TimeCost step("my_app", "step_time_cost", {.help = "Time of a training step.", .unit = "seconds"});
  for (int i = 0; i < 2000; ++i) {
    persia::metrics::ScopedTimer timer(step);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // here you train
    batches.Increment();
  }
}
