// The phases of the process, for other parts of the library. Thread safety: any function, from any thread.
#pragma once

#include <cstdint>

namespace persia::metrics {
inline namespace abi_1 {

// How many phases the calling thread is in. 0, too, if the process has the phases of another thread.
[[nodiscard]] uint32_t PhaseDepth() noexcept;

// The process has done `count` more steps: its step's number goes on, as progress.h describes.
void AdvanceStep(uint64_t count) noexcept;

}  // namespace abi_1
}  // namespace persia::metrics
