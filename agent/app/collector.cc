#include "app/collector.h"

#include <algorithm>
#include <utility>

#include "base/thread.h"

namespace persia::agent {

Collector::Collector(Options options) : options_(std::move(options)), interval_(options_.interval) {}

Collector::~Collector() {
  if (thread_.joinable()) Stop();
}

void Collector::Start() {
  {
    const MutexLock lock(mutex_);
    last_sign_ = options_.clock->Now();
  }
  thread_ = StartThread("collector", [this] { Loop(); });
}

std::shared_ptr<const Snapshot> Collector::Newest() {
  const MutexLock lock(mutex_);
  return newest_;
}

bool Collector::AliveWithin(std::chrono::milliseconds age) {
  const MutexLock lock(mutex_);
  return last_sign_ + age >= options_.clock->Now();
}

std::shared_ptr<const Snapshot> Collector::NoOlderThan(std::chrono::milliseconds age) {
  const MutexLock lock(mutex_);
  const Clock::TimePoint asked = options_.clock->Now();
  // A collection that has begun since this call is new enough, even if it took long.
  while ((full_.snapshot == nullptr || full_.began + age < asked) && !stopped_) {
    if (!collecting_full_ || current_began_ + age < asked) {
      wanted_ = true;
      wake_.NotifyOne();
    }
    const uint64_t seen = finished_;
    while (finished_ == seen && !stopped_) done_.Wait(mutex_);
  }
  return full_.snapshot;
}

void Collector::SetInterval(std::chrono::milliseconds interval) {
  const MutexLock lock(mutex_);
  interval_ = interval;
  interval_changed_ = true;
  wake_.NotifyOne();
}

std::shared_ptr<const Snapshot> Collector::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.NotifyOne();
  thread_.join();
  return Newest();
}

Collector::Task Collector::AwaitTask(Due& due) {
  const MutexLock lock(mutex_);
  const Clock::TimePoint next = std::min(due.tick, due.look);
  while (!stopping_ && !wanted_ && !interval_changed_ && options_.clock->Now() < next)
    options_.clock->WaitUntil(mutex_, wake_, next);
  Task task{.began = options_.clock->Now(), .is_last = stopping_};
  if (interval_changed_) {
    interval_changed_ = false;
    due.tick = task.began;
  }
  task.is_tick = !task.is_last && task.began >= due.tick;
  task.is_look = !task.is_last && !task.is_tick && task.began >= due.look;
  if (task.is_tick) {
    task.skipped_ticks = static_cast<uint64_t>((task.began - due.tick) / interval_);
    due.tick += interval_ * (task.skipped_ticks + 1);
  }
  if (task.is_last) task.depth = Depth::kLast;
  if (task.is_look && !wanted_) task.depth = Depth::kLook;
  wanted_ = false;
  current_began_ = task.began;
  collecting_full_ = task.depth != Depth::kLook;
  return task;
}

// None that the next tick would follow at once.
Clock::TimePoint Collector::NextLook(Clock::TimePoint began, Clock::TimePoint next_tick) const {
  constexpr int kPauses = 100;
  constexpr int kQuietPauses = 10'000;
  if (options_.look_interval.count() == 0) return next_tick;
  const Clock::TimePoint::duration took = options_.clock->Now() - began;
  const auto pause =
      std::max<Clock::TimePoint::duration>(options_.look_interval, (options_.is_quiet() ? kQuietPauses : kPauses) * took);
  return began + pause + pause / 2 >= next_tick ? next_tick : began + pause;
}

void Collector::Loop() {
  Due due{.tick = options_.clock->Now(), .look = options_.clock->Now()};
  for (;;) {
    const Task task = AwaitTask(due);
    if (task.skipped_ticks > 0) options_.on_skipped(task.skipped_ticks);
    std::shared_ptr<const Snapshot> collection = options_.collect(task.depth);
    if (task.is_tick || task.is_look) due.look = NextLook(task.began, due.tick);
    if (task.is_tick) options_.on_tick(collection);
    if (task.is_look) options_.on_look(collection);
    const MutexLock lock(mutex_);
    if (task.depth != Depth::kLook) full_ = {collection, task.began};
    newest_ = std::move(collection);
    last_sign_ = options_.clock->Now();
    collecting_full_ = false;
    ++finished_;
    stopped_ = task.is_last;
    done_.NotifyAll();
    if (task.is_last) return;
  }
}

}  // namespace persia::agent
