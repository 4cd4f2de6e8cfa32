// A bounded queue between threads, which can be closed.
//
// Thread safety: any method, from any thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

namespace embedding_job {

template <class T>
class Channel {
 public:
  // `on_size` is called with the number of waiting items after each change, in the order of the changes.
  explicit Channel(size_t capacity, std::function<void(size_t)> on_size = {})
      : capacity_(capacity), on_size_(std::move(on_size)) {}

  // Waits while the channel is full. False: it was closed, the item is dropped.
  bool Push(T item) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || items_.size() < capacity_; });
    if (closed_) return false;
    items_.push_back(std::move(item));
    SizeChanged();
    return true;
  }

  // Waits while the channel is empty. None: it is closed and empty.
  std::optional<T> Pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || !items_.empty(); });
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    SizeChanged();
    return item;
  }

  // Accepts no more items. The waiting ones can still be taken.
  void Close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  // REQUIRES: mutex_ is held.
  void SizeChanged() {
    if (on_size_) on_size_(items_.size());
    changed_.notify_all();
  }

  const size_t capacity_;
  const std::function<void(size_t)> on_size_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> items_;
  bool closed_ = false;
};

}  // namespace embedding_job
