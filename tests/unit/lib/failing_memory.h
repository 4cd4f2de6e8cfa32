// Makes `operator new` of the test program fail, which throws std::bad_alloc.
#pragma once

namespace persia::metrics::tests {

// The call after the next `calls` fails, in any thread; then all succeed again. Negative: none fails.
void FailAllocationAfter(long calls);

// Whether a call has failed.
bool AllocationHasFailed();

}  // namespace persia::metrics::tests
