// A handle of the library's own metric, made at its first use: its definition costs a look-up by name.
#pragma once

#include <atomic>
#include <new>
#include <optional>
#include <type_traits>

#include "registry.h"

namespace persia::metrics {
inline namespace abi_1 {

// Constant-initialised, and never destroyed. Thread safety: any method, from any thread.
template <class Handle>
class MadeOnce {
  static_assert(std::is_trivially_copyable_v<Handle>);

 public:
  // The handle that `make` returns; nothing, counted as dropped, if memory is short. Threads may make it at once: all handles
  // of one name are the same.
  template <class Make>
  std::optional<Handle> Get(const Make& make) noexcept {
    if (!made_.load(std::memory_order_acquire)) {
      try {
        handle_.store(make(), std::memory_order_relaxed);
        made_.store(true, std::memory_order_release);  // pairs with the acquire above
      } catch (const std::bad_alloc&) {
        Registry::Get().CountDropped(segment::Drop::kOutOfMemory);
        return std::nullopt;
      }
    }
    return handle_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<Handle> handle_;
  std::atomic<bool> made_ = false;
};

}  // namespace abi_1
}  // namespace persia::metrics
