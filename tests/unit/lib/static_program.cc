// A program without shared libraries.
#include "persia/metrics/metrics.h"

int main() {
  persia::metrics::Counter("static", "calls").Increment();
  return 0;
}
