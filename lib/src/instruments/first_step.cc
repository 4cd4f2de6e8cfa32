#include "first_step.h"

#include <pthread.h>

#include <atomic>
#include <new>

#include "persia/metrics/instruments.h"
#include "registry.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace {

constinit std::atomic<bool> is_noted = false;  // in this process
constinit std::atomic<bool> fork_is_handled = false;

}  // namespace

void NoteFirstStep(uint64_t step) noexcept {
  if (is_noted.load(std::memory_order_relaxed) || is_noted.exchange(true, std::memory_order_relaxed)) return;
  if (!fork_is_handled.exchange(true, std::memory_order_relaxed)) {
    pthread_atfork(nullptr, nullptr, [] { is_noted.store(false, std::memory_order_relaxed); });
  }
  try {
    Gauge("persia_phase", "first_step", {.help = "The first step that the process trained."}).Set(static_cast<double>(step));
  } catch (const std::bad_alloc&) {
    Registry::Get().CountDropped(segment::Drop::kOutOfMemory);
  }
}

}  // namespace abi_1
}  // namespace persia::metrics
