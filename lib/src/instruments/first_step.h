// The gauge `persia_phase_first_step`: the number of the first step of the process. After a restart, it is the step from which
// the run continues.
#pragma once

#include <cstdint>

namespace persia::metrics {
inline namespace abi_1 {

// The process trains this step now; the first call in the process counts. Any thread.
void NoteFirstStep(uint64_t step) noexcept;

}  // namespace abi_1
}  // namespace persia::metrics
