// A plugin that counts, as a data loader's plugin does. It is linked with either library.
#include "persia/metrics/metrics.h"

extern "C" __attribute__((visibility("default"))) void CountInPlugin() {
  static persia::metrics::Counter calls("plugin", "calls");
  static persia::metrics::Histogram sizes("plugin", "sizes", persia::metrics::DefaultSecondsBounds());
  calls.Increment();
  sizes.Observe(1);
  persia::metrics::events::Record("plugin", "called");
}
