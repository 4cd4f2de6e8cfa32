// Lets `new` fail in a test: the program has its own operators.
#pragma once

namespace persia::metrics::tests {

constexpr int kAnyNumberOfAllocations = -1;

// How many allocations the calling thread still gets; then each throws std::bad_alloc.
extern thread_local int allocations_left;

}  // namespace persia::metrics::tests
