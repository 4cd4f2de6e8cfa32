#include "fast_math.h"

namespace persia::metrics::testing {

void IncrementWithFastMath(Counter& counter, double by) { counter.Increment(by); }
void ObserveWithFastMath(Histogram& histogram, double value) { histogram.Observe(value); }

}  // namespace persia::metrics::testing
