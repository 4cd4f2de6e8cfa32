// The gauge `persia_phase_first_step`: with which step the process began. Of a process that starts again, it tells from where.
#pragma once

#include <cstdint>

namespace persia::metrics {
inline namespace abi_1 {

// The process trains this step now; the first call in the process counts. Any thread.
void NoteFirstStep(uint64_t step) noexcept;

}  // namespace abi_1
}  // namespace persia::metrics
