#include "app/collector.h"

#include <utility>

namespace persia::agent {

Collector::Collector(Options options) : options_(std::move(options)), interval_(options_.interval) {}

Collector::~Collector() {
  if (thread_.joinable()) {
    Stop();
  }
}

void Collector::Start() {
  last_sign_ = options_.clock->Now();
  thread_ = std::thread(&Collector::Loop, this);
}

std::shared_ptr<const Snapshot> Collector::Newest() {
  const std::lock_guard lock(mutex_);
  return newest_;
}

bool Collector::AliveWithin(std::chrono::milliseconds age) {
  const std::lock_guard lock(mutex_);
  return last_sign_ + age >= options_.clock->Now();
}

std::shared_ptr<const Snapshot> Collector::NoOlderThan(std::chrono::milliseconds age) {
  std::unique_lock lock(mutex_);
  const Clock::TimePoint asked = options_.clock->Now();
  // Whether the newest is good enough; one that has begun since we asked is, however long it took.
  const auto good = [&] { return newest_ != nullptr && newest_began_ + age >= asked; };
  while (!good() && !stopped_) {
    if (!collecting_ || current_began_ + age < asked) {
      wanted_ = true;
      wake_.notify_one();
    }
    const uint64_t seen = finished_;
    done_.wait(lock, [&] { return finished_ != seen || stopped_; });
  }
  return newest_;
}

void Collector::SetInterval(std::chrono::milliseconds interval) {
  const std::lock_guard lock(mutex_);
  interval_ = interval;
  interval_changed_ = true;
  wake_.notify_one();
}

std::shared_ptr<const Snapshot> Collector::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
  return newest_;
}

void Collector::Loop() {
  std::unique_lock lock(mutex_);
  Clock::TimePoint next_tick = options_.clock->Now();
  for (;;) {
    while (!stopping_ && !wanted_ && !interval_changed_ && options_.clock->Now() < next_tick) {
      options_.clock->WaitUntil(lock, wake_, next_tick);
    }
    const Clock::TimePoint began = options_.clock->Now();
    if (interval_changed_) {
      interval_changed_ = false;
      next_tick = began;
    }
    const bool last = stopping_;
    const bool tick = !last && began >= next_tick;
    wanted_ = false;
    uint64_t skipped = 0;
    if (tick) {
      skipped = static_cast<uint64_t>((began - next_tick) / interval_);
      next_tick += interval_ * (skipped + 1);
    }
    current_began_ = began;
    collecting_ = true;
    lock.unlock();
    if (skipped > 0) {
      options_.on_skipped(skipped);
    }
    std::shared_ptr<const Snapshot> collection = options_.collect();
    if (tick) {
      options_.on_tick(collection);
    }
    lock.lock();
    newest_ = std::move(collection);
    newest_began_ = began;
    last_sign_ = options_.clock->Now();
    collecting_ = false;
    ++finished_;
    stopped_ = last;
    done_.notify_all();
    if (last) {
      return;
    }
  }
}

}  // namespace persia::agent
