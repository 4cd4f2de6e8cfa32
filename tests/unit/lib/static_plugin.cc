// A plugin with the static library inside. Its version script hides all symbols but one, so no unique symbol keeps it loaded.
#include <atomic>
#include <thread>

#include "persia/metrics/metrics.h"

// Counts in a thread that ends only after `*go` is set.
extern "C" std::thread* CountInStaticPlugin(void (*wait)()) {
  static persia::metrics::Counter counter("plugin", "calls");
  counter.Increment();
  std::atomic<bool> counted = false;
  auto* thread = new std::thread([&counted, wait] {
    counter.Increment();
    counted = true;
    counted.notify_one();
    wait();
  });
  counted.wait(false);
  return thread;
}
