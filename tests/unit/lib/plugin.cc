// A plugin that counts through the shared library, as a Python extension or a data loader's plugin does.
#include <thread>

#include "persia/metrics/metrics.h"

extern "C" void CountInPlugin(int times) {
  static persia::metrics::Counter counter("plugin", "calls");
  const auto count = [times] {
    for (int i = 0; i < times; ++i) {
      counter.Increment();
    }
  };
  count();
  std::thread(count).join();
}
