// Which handler takes what: one for each key, and one for all others.
//
// There is one table of each kind of handler, which is never destroyed: values and events come after main.
// Thread safety: any method, any thread; a forked child finds no lock held.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "fork_safe_mutex.h"

namespace persia::metrics {

template <class Handler>
class HandlerTable {
 public:
  using Pointer = std::shared_ptr<Handler>;

  static HandlerTable& Get() {
    static HandlerTable& table = *new HandlerTable;
    return table;
  }

  // Nobody has set anything yet.
  [[nodiscard]] bool untouched() const { return !touched_.load(std::memory_order_relaxed); }

  // A null pointer takes it back.
  void Set(Pointer handler, std::string_view key) {
    touched_.store(true, std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    if (handler == nullptr) {
      keys_.erase(std::string(key));
    } else {
      keys_.insert_or_assign(std::string(key), std::move(handler));
    }
  }
  // Of all keys that have none of their own.
  void SetDefault(Pointer handler) {
    touched_.store(true, std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    default_ = std::move(handler);
  }
  // Null: none was set.
  Pointer Find(std::string_view key) {
    const std::lock_guard lock(mutex_);
    const auto found = keys_.find(key);
    return found == keys_.end() ? default_ : found->second;
  }

 private:
  HandlerTable() = default;

  std::atomic<bool> touched_ = false;
  ForkSafeMutex<HandlerTable> mutex_;
  std::map<std::string, Pointer, std::less<>> keys_;
  Pointer default_;
};

}  // namespace persia::metrics
