// The phases of the process, for other parts of the library. Thread safety: any function, from any thread.
#pragma once

#include <cstdint>

namespace persia::metrics {
inline namespace abi_1 {

// How many phases the calling thread is in. 0, too, if the process has the phases of another thread.
[[nodiscard]] uint32_t PhaseDepth() noexcept;

// The number of the step for a program that does not number its steps: ignored after the first SetStep.
void SetCountedStep(uint64_t steps) noexcept;

}  // namespace abi_1
}  // namespace persia::metrics
