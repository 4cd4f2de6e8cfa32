// Logs the directory in which workers are expected if there are none, and reports when the last worker has ended.
//
// Thread safety: the collector thread alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/timing.h"
#include "workers/segment_source.h"

namespace persia::agent {

class WorkerWatch {
 public:
  struct Options {
    std::string directory;
    // Whether a job without workers is expected to have some soon. One that writes to the pipe for `emit` needs none.
    bool expects_workers = true;
    // `on_idle` is called once, when no worker has been alive for this long; only after there was a worker. None: never.
    std::optional<std::chrono::milliseconds> idle_limit = {};
    std::function<void()> on_idle = {};
  };

  explicit WorkerWatch(Options options) : options_(std::move(options)) {}

  // After each collection.
  void Look(const SegmentSourceStats& stats, Clock::TimePoint now);

 private:
  const Options options_;
  std::optional<Clock::TimePoint> began_;
  uint64_t ticks_without_workers_ = 0;
  bool workers_seen_ = false;
  std::optional<Clock::TimePoint> idle_since_;
  bool idle_reported_ = false;
  bool is_told_ = false;  // that there are none
};

}  // namespace persia::agent
