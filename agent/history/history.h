// What was collected lately, in memory: for charts on the agent's own page, not a database.
//
//   History history({.span = 30min, .max_bytes = 64 << 20});
//   history.Add(snapshot, steady_now);                  // at each tick; keeps those that are far enough apart
//   std::vector<History::Entry> entries = history.Entries();
//
// A snapshot is kept as it is: its numbers are an array that nobody else needs any more, and its layout is shared with the one
// before as long as no series came or went. So a number costs 8 bytes for each collection that is kept.
//
// Times are those of the wall clock at the first Add, carried on by the steady clock: a clock that is set does not fold a
// chart. Thread safety: any method, from any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "model/snapshot.h"

namespace persia::agent {

class History {
 public:
  struct Options {
    std::chrono::milliseconds span{1'800'000};  // 0: nothing is kept
    // Of numbers and layouts together; above, the oldest go, but the newest stays.
    size_t max_bytes = size_t{64} << 20;
  };
  struct Entry {
    int64_t unix_ms = 0;
    std::shared_ptr<const Snapshot> snapshot;
  };
  struct Stats {
    Options options;
    std::chrono::milliseconds step{0};  // two collections that are kept are not nearer to each other
    size_t bytes = 0;
    size_t entries = 0;
    std::optional<int64_t> oldest_unix_ms = {};
  };

  // So many collections are kept at most.
  static constexpr int64_t kMostEntries = 720;

  explicit History(Options options) : options_(options) {}

  void Add(std::shared_ptr<const Snapshot> snapshot, std::chrono::steady_clock::time_point now);
  // From now on; what is above the new limits goes at the next Add.
  void SetOptions(const Options& options);
  // The oldest first.
  [[nodiscard]] std::vector<Entry> Entries() const;
  [[nodiscard]] Stats stats() const;

 private:
  struct Kept {
    Entry entry;
    std::chrono::steady_clock::time_point at;
    size_t bytes = 0;  // its layout's included, if the one before has another
  };

  [[nodiscard]] std::chrono::milliseconds Step() const { return options_.span / kMostEntries; }
  void DropOldest();

  mutable std::mutex mutex_;
  Options options_;                                             // guarded by mutex_, as all that follows
  std::optional<std::chrono::steady_clock::time_point> begin_;  // of the first Add
  int64_t begin_unix_ms_ = 0;
  std::deque<Kept> kept_;
  size_t bytes_ = 0;
};

}  // namespace persia::agent
