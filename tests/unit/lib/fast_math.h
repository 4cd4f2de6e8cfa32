// The hot calls, compiled with -ffast-math.
#pragma once

#include "persia/metrics/instruments.h"

namespace persia::metrics::tests {

void IncrementWithFastMath(Counter& counter, double by);
// By 0.5, 1.5, -0.25 and 3, which the compiler knows.
void IncrementByConstantsWithFastMath(Counter& counter);
void ObserveWithFastMath(Histogram& histogram, double value);

}  // namespace persia::metrics::tests
