#include <persia/metrics/metrics.h>

#include <chrono>
#include <cstdlib>
#include <thread>

int main(int argc, char** argv) {
  persia::metrics::Init({"quickstart", "trainer"});  // job and role
  persia::metrics::Counter batches("my_app", "batches_total", {"Batches trained."});
  persia::metrics::Gauge loss("my_app", "loss", {"Training loss."});
  persia::metrics::TimeCost step_time("my_app", "step_time_cost", {"Time of a training step.", "seconds"});
  const int steps = argc > 1 ? std::atoi(argv[1]) : 1200;
  persia::metrics::SetTotalSteps(steps);
  for (int step = 0; step < steps; ++step) {
    persia::metrics::ScopedTimer timer(step_time);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // here you train
    batches.Increment();
    loss.Set(2 / (1 + step / 100.0));
    persia::metrics::CountSteps();
  }
}
