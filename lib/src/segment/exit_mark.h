// The mark that a process leaves in its segment when it exits normally.
//
// With it, an agent distinguishes a process that left from one that died, whichever process reaps it: a signal and _exit leave
// no mark. The mark has the exit code where the C library tells it (glibc's on_exit).
//
// Thread safety: any function, from any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace persia::metrics {
inline namespace abi_1 {

// From now on, the mark of this process is `*mark`. It must stay mapped until the process ends.
void MarkExitIn(std::atomic<uint64_t>* mark) noexcept;
// In a forked child, which has no segment yet: its exit leaves no mark in its parent's.
void ForgetExitMark() noexcept;

}  // namespace abi_1
}  // namespace persia::metrics
