#include "fast_math.h"

namespace persia::metrics::tests {

void IncrementWithFastMath(Counter& counter, double by) { counter.Increment(by); }
void IncrementByConstantsWithFastMath(Counter& counter) {
  counter.Increment(0.5);
  counter.Increment(1.5);
  counter.Increment(-0.25);
  counter.Increment(3.0);
}
void ObserveWithFastMath(Histogram& histogram, double value) { histogram.Observe(value); }

}  // namespace persia::metrics::tests
