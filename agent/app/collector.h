// The collector thread: reads all sources at each tick, in looks between two ticks, and when a scrape needs newer values.
//
// Ticks are at start + n * interval, so that they do not drift. A tick that is due before the last one has finished is skipped.
// Looks are at least `look_interval` apart, and as rare as they have to be to take a hundredth of a processor at most; of a job
// in which nothing happens, a ten-thousandth. The collection of a look has less than the others, and is not for scrapes.
// Concurrent scrapes share one collection.
//
//   Collector collector({.interval = 10s, .look_interval = 1s, .clock = &clock, .collect = ..., .on_tick = ..., ...});
//   collector.Start();
//   collector.NoOlderThan(1s);        // any thread
//   auto last = collector.Stop();     // with one last collection
//
// Thread safety: any method except Start and Stop, from any thread. `collect` and the callbacks run only in the collector's
// thread, one at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "base/mutex.h"
#include "base/timing.h"
#include "model/snapshot.h"

namespace persia::agent {

// The agent's: between two collections for the page, the verdicts and the history.
inline constexpr std::chrono::seconds kLookInterval(1);

enum class Depth : uint8_t {
  kLook,  // what pages, verdicts and the history need each second; the rest may be that of the last full collection
  kFull,
  kLast,  // full, and none follows
};

class Collector {
 public:
  struct Options {
    std::chrono::milliseconds interval{10'000};
    std::chrono::milliseconds look_interval{0};  // 0: no looks
    Clock* clock = nullptr;
    std::function<std::shared_ptr<const Snapshot>(Depth depth)> collect;
    // Called after the collection of a tick or a look, not of a scrape.
    std::function<void(std::shared_ptr<const Snapshot>)> on_tick;
    std::function<void(std::shared_ptr<const Snapshot>)> on_look = [](auto&&) {};
    // After a collection: whether nothing has happened in the job for a while.
    std::function<bool()> is_quiet = [] { return false; };
    // Called when ticks were skipped.
    std::function<void(uint64_t ticks)> on_skipped;
  };

  explicit Collector(Options options);
  ~Collector();

  // The first tick is immediate.
  void Start();
  // The newest collection, of a look, too; null before the first.
  std::shared_ptr<const Snapshot> Newest();
  // Whether the last collection has finished, or the thread has started, within `age`.
  bool AliveWithin(std::chrono::milliseconds age);
  // A full collection that is at most `age` old, made for this call if necessary; null if the collector has stopped before its
  // first one.
  std::shared_ptr<const Snapshot> NoOlderThan(std::chrono::milliseconds age);
  // Changes the interval; the next tick is immediate.
  void SetInterval(std::chrono::milliseconds interval);
  // Ends the thread after a last collection, which is returned and is not a tick. REQUIRES: started and not stopped.
  std::shared_ptr<const Snapshot> Stop();

 private:
  struct Task {
    Clock::TimePoint began;
    uint64_t skipped_ticks = 0;
    bool is_tick = false;
    bool is_look = false;
    bool is_last = false;
    Depth depth = Depth::kFull;
  };
  struct Collected {
    std::shared_ptr<const Snapshot> snapshot;
    Clock::TimePoint began;
  };
  // When the next tick, and the next look, are due.
  struct Due {
    Clock::TimePoint tick;
    Clock::TimePoint look;
  };

  void Loop();
  // Waits for the next tick, look, scrape or stop.
  Task AwaitTask(Due& due);
  // After the collection of a tick or a look.
  [[nodiscard]] Clock::TimePoint NextLook(Clock::TimePoint began, Clock::TimePoint next_tick) const;

  const Options options_;
  Mutex mutex_;
  CondVar wake_;  // the collector's thread waits
  CondVar done_;  // NoOlderThan waits for a collection
  std::chrono::milliseconds interval_ PERSIA_GUARDED_BY(mutex_);
  bool interval_changed_ PERSIA_GUARDED_BY(mutex_) = false;
  std::shared_ptr<const Snapshot> newest_ PERSIA_GUARDED_BY(mutex_);
  Collected full_ PERSIA_GUARDED_BY(mutex_);              // the newest full one
  Clock::TimePoint last_sign_ PERSIA_GUARDED_BY(mutex_);  // the thread's start, then the end of each collection
  uint64_t finished_ PERSIA_GUARDED_BY(mutex_) = 0;       // collections
  Clock::TimePoint current_began_ PERSIA_GUARDED_BY(mutex_);
  bool collecting_full_ PERSIA_GUARDED_BY(mutex_) = false;
  bool wanted_ PERSIA_GUARDED_BY(mutex_) = false;  // by a scrape
  bool stopping_ PERSIA_GUARDED_BY(mutex_) = false;
  bool stopped_ PERSIA_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace persia::agent
