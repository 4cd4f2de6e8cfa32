// The hot calls, compiled with -ffast-math.
#pragma once

#include "persia/metrics/instruments.h"

namespace persia::metrics::testing {

void IncrementWithFastMath(Counter& counter, double by);
void ObserveWithFastMath(Histogram& histogram, double value);

}  // namespace persia::metrics::testing
