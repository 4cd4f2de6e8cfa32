// The collector thread: reads all sources at each tick, and for a scrape that wants newer numbers.
//
// Ticks stand at start + n * interval, so that they do not drift by what the work takes; one that comes too late is left out.
// Scrapes share the newest collection, or one fresh one: however many ask at once, the sources are read once.
//
//   Collector collector({.interval = 10s, .clock = &clock, .collect = ..., .on_tick = ...});
//   collector.Start();
//   collector.NoOlderThan(1s);        // any thread
//   auto last = collector.Stop();     // with one last collection
//
// Thread safety: any method, from any thread, but for Start and Stop. `collect` and the callbacks run in the collector's thread
// alone, never two at once.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "app/clock.h"
#include "model/snapshot.h"

namespace persia::agent {

class Collector {
 public:
  struct Options {
    std::chrono::milliseconds interval{10'000};
    Clock* clock = nullptr;
    std::function<std::shared_ptr<const Snapshot>()> collect;
    // After each collection of a tick, not of a scrape.
    std::function<void(std::shared_ptr<const Snapshot>)> on_tick;
    // So many ticks were left out, since the work before them took too long.
    std::function<void(uint64_t ticks)> on_skipped;
  };

  explicit Collector(Options options);
  ~Collector();

  // The first tick is now.
  void Start();
  // The newest collection; null before the first.
  std::shared_ptr<const Snapshot> Newest();
  // Whether collecting goes on: the last one is at most `age` old, or has yet to come so soon after Start.
  bool AliveWithin(std::chrono::milliseconds age);
  // One that is not older than `age`, which may be read for this call; null if the collector has been stopped before its first.
  std::shared_ptr<const Snapshot> NoOlderThan(std::chrono::milliseconds age);
  // Ticks come so often from now on; the first of them at once.
  void SetInterval(std::chrono::milliseconds interval);
  // Ends the thread after one last collection, which is returned and is no tick. REQUIRES: started, and not yet stopped.
  std::shared_ptr<const Snapshot> Stop();

 private:
  void Loop();

  const Options options_;
  std::mutex mutex_;
  std::condition_variable wake_;  // of the collector's thread
  std::condition_variable done_;  // of those who wait for a collection
  std::chrono::milliseconds interval_;
  bool interval_changed_ = false;
  std::shared_ptr<const Snapshot> newest_;
  Clock::TimePoint newest_began_;
  Clock::TimePoint last_sign_;  // the thread's start, then each collection's end
  uint64_t finished_ = 0;       // collections so far
  Clock::TimePoint current_began_;
  bool collecting_ = false;
  bool wanted_ = false;  // by a scrape
  bool stopping_ = false;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace persia::agent
