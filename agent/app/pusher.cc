#include "app/pusher.h"

#include <utility>

namespace persia::agent {

Pusher::Pusher(Options options) : options_(std::move(options)) {}

Pusher::~Pusher() {
  if (thread_.joinable()) {
    Interrupt();
    Finish(nullptr);
  }
}

void Pusher::Start() { thread_ = std::thread(&Pusher::Loop, this); }

bool Pusher::Offer(std::shared_ptr<const Snapshot> snapshot) {
  const std::lock_guard lock(mutex_);
  if (busy_ || waiting_ != nullptr || finishing_) {
    return false;
  }
  waiting_ = std::move(snapshot);
  wake_.notify_one();
  return true;
}

bool Pusher::Finish(std::shared_ptr<const Snapshot> last) {
  bool interrupted = false;
  {
    std::unique_lock lock(mutex_);
    waiting_ = nullptr;
    if (!idle_.wait_for(lock, options_.grace, [&] { return !busy_ || given_up_; })) {
      interrupted = true;
    }
  }
  if (interrupted) {
    options_.interrupt();
  }
  const bool anything = last != nullptr;
  {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return !busy_; });
    if (interrupted && !given_up_) {
      options_.rearm();
    }
    waiting_ = std::move(last);
    finishing_ = true;
    wake_.notify_one();
  }
  thread_.join();
  return anything && state_.last_error.empty();
}

void Pusher::Interrupt() {
  {
    const std::lock_guard lock(mutex_);
    given_up_ = true;
    idle_.notify_all();
  }
  options_.interrupt();
}

Pusher::State Pusher::state() {
  const std::lock_guard lock(mutex_);
  return state_;
}

void Pusher::Loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return waiting_ != nullptr || finishing_; });
    if (waiting_ != nullptr) {
      const std::shared_ptr<const Snapshot> snapshot = std::exchange(waiting_, nullptr);
      busy_ = true;
      lock.unlock();
      PushOne(*snapshot);
      lock.lock();
      busy_ = false;
      idle_.notify_all();
    } else {
      return;
    }
  }
}

void Pusher::PushOne(const Snapshot& snapshot) {
  const Status status = options_.push(snapshot);
  const std::lock_guard lock(mutex_);
  ++state_.pushes;
  if (status.ok()) {
    state_.last_success = std::chrono::system_clock::now();
    state_.last_error.clear();
  } else {
    ++state_.failed;
    state_.last_error = status.error();
  }
}

}  // namespace persia::agent
