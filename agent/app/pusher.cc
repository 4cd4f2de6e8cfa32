#include "app/pusher.h"

#include <utility>

namespace persia::agent {

Pusher::Pusher(Options options)
    : options_(std::move(options)), limit_(options_.limit), limit_if_away_(options_.limit_if_away) {}

Pusher::~Pusher() {
  if (thread_.joinable()) {
    Interrupt();
    static_cast<void>(Finish(std::make_shared<const Snapshot>()));
  }
}

void Pusher::Start() { thread_ = std::thread(&Pusher::Loop, this); }

bool Pusher::Offer(std::shared_ptr<const Snapshot> snapshot) {
  const std::lock_guard lock(mutex_);
  if (busy_ || waiting_ != nullptr || held_ || finishing_) {
    return false;
  }
  waiting_ = std::move(snapshot);
  wake_.notify_one();
  return true;
}

void Pusher::Insist(std::shared_ptr<const Snapshot> snapshot) {
  const std::lock_guard lock(mutex_);
  if (!held_ && !finishing_) {
    waiting_ = std::move(snapshot);
    wake_.notify_one();
  }
}

void Pusher::Hold() {
  std::unique_lock lock(mutex_);
  held_ = true;
  waiting_ = nullptr;
  idle_.wait(lock, [&] { return !busy_; });
}

void Pusher::Release() {
  const std::lock_guard lock(mutex_);
  held_ = false;
}

void Pusher::SetLimits(std::chrono::milliseconds limit, std::chrono::milliseconds limit_if_away) {
  const std::lock_guard lock(mutex_);
  limit_ = limit;
  limit_if_away_ = limit_if_away;
}

Status Pusher::Finish(std::shared_ptr<const Snapshot> last) {
  {
    std::unique_lock lock(mutex_);
    finishing_ = true;  // nothing more is taken from others
    waiting_ = nullptr;
    const bool in_time = WaitIdle(lock, options_.grace);
    if (!in_time && !given_up_) {
      options_.rearm();
    }
    const std::string former = state_.last_error;
    const bool away = !in_time || !former.empty();
    waiting_ = std::move(last);
    ended_ = true;
    wake_.notify_one();
    if (!WaitIdle(lock, away ? limit_if_away_ : limit_) && !former.empty()) {
      state_.last_error = former;  // says more than that the last one was cut short
    }
  }
  thread_.join();
  return state_.last_error.empty() ? Status(Done{}) : Status(Error{state_.last_error});
}

// Until nothing is waiting or under way; after `limit`, what is under way is interrupted, and false returned.
bool Pusher::WaitIdle(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds limit) {
  const auto idle = [&] { return !busy_ && waiting_ == nullptr; };
  if (idle_.wait_for(lock, limit, [&] { return idle() || given_up_; }) && idle()) {
    return true;
  }
  lock.unlock();
  options_.interrupt();
  lock.lock();
  idle_.wait(lock, idle);
  return false;
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
    wake_.wait(lock, [&] { return waiting_ != nullptr || ended_; });
    if (waiting_ != nullptr) {
      const std::shared_ptr<const Snapshot> snapshot = std::exchange(waiting_, nullptr);
      busy_ = true;
      lock.unlock();
      const auto began = std::chrono::steady_clock::now();
      const Status status = options_.push(*snapshot);
      const auto took = std::chrono::steady_clock::now() - began;
      lock.lock();
      Note(status, took);
      busy_ = false;
      idle_.notify_all();
    } else {
      return;
    }
  }
}

void Pusher::Note(const Status& status, std::chrono::steady_clock::duration took) {
  ++state_.pushes;
  state_.last_took = took;
  if (status.ok()) {
    state_.last_success = std::chrono::system_clock::now();
    state_.last_success_steady = std::chrono::steady_clock::now();
    state_.last_error.clear();
  } else {
    ++state_.failed;
    state_.last_error = status.error();
  }
}

}  // namespace persia::agent
