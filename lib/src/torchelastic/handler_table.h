// The configured handlers: one for each key, and a default for all others.
//
// A table is made at compile time and never destroyed, since values and events are recorded before and after main.
// Thread safety: any method, from any thread. In a forked child the lock is free. No handler is destroyed under it: that may
// run any code of the program.
#pragma once

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "fork_locks.h"

namespace persia::metrics {
inline namespace abi_1 {

// Whether the objects are of one class, by their virtual tables. `typeid` crashes if the program that defines a class was
// compiled without run-time type information.
template <class A, class B>
bool SameClass(const A& a, const B& b) {
  const void* tables[2];
  std::memcpy(&tables[0], static_cast<const void*>(&a), sizeof(void*));
  std::memcpy(&tables[1], static_cast<const void*>(&b), sizeof(void*));
  return tables[0] == tables[1];
}

template <class Handler, ForkLock kLock>
class HandlerTable {
 public:
  using Pointer = std::shared_ptr<Handler>;

  // Whether a handler was ever set. Takes no lock, so that a program without handlers does not pay for them.
  [[nodiscard]] bool ever_set() const { return ever_set_.load(std::memory_order_relaxed); }

  // A null `handler` removes the key's handler. Throws std::bad_alloc; then nothing has changed.
  void Set(Pointer handler, std::string_view key) {
    MutexLock lock(MutexOf(kLock));
    Pointer& held = Keys()[std::string(key)];  // null: the default handler is used
    ever_set_.store(true, std::memory_order_relaxed);
    held.swap(handler);
  }
  // Sets the handler of all keys that have none of their own. Throws std::bad_alloc.
  void SetDefault(Pointer handler) { Set(std::move(handler), kDefault); }
  // The handler of `key`, else the default. Null: neither is set.
  Pointer Find(std::string_view key) {
    MutexLock lock(MutexOf(kLock));
    if (keys_ == nullptr) return nullptr;
    for (const std::string_view wanted : {key, kDefault})
      if (const auto found = keys_->find(wanted); found != keys_->end() && found->second != nullptr) return found->second;
    return nullptr;
  }

 private:
  using Map = std::map<std::string, Pointer, std::less<>>;
  // No key of a program: it is not UTF-8.
  static constexpr std::string_view kDefault = "\xff";

  Map& Keys() {
    if (keys_ == nullptr) keys_ = new Map;
    return *keys_;
  }

  std::atomic<bool> ever_set_ = false;
  Map* keys_ = nullptr;  // guarded by the lock
};

}  // namespace abi_1
}  // namespace persia::metrics
