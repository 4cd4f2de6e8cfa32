// The collections of the last half hour, in memory, for the charts of the agent's page.
//
//   History history({.span = 30min, .max_bytes = 64 << 20});
//   history.Add(snapshot, steady_now);   // of each second
//   std::vector<History::Entry> entries = history.Entries();
//
// The newest collection is always there; those before it are a step apart. A collection takes 8 bytes a number: snapshots share
// their layout until a series is added or removed. If the half hour does not fit into the memory, the newest collections stay
// close together: dropped is the one whose neighbours are closest to each other for their age.
//
// Times are wall-clock time at the first Add, and steady time from there: a change of the system's clock does not disorder a
// chart. Thread safety: any method, from any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "model/snapshot.h"

namespace persia::agent {

class History {
 public:
  struct Options {
    std::chrono::milliseconds span{1'800'000};  // 0: nothing is kept
    // Of values and layouts. Above it, the oldest entries are dropped; the newest always stays. They are dropped, too, if
    // former layouts take more than an eighth of the memory for what others have written (base/foreign_memory.h).
    size_t max_bytes = size_t{64} << 20;
  };
  struct Entry {
    int64_t unix_ms = 0;
    std::shared_ptr<const Snapshot> snapshot;
  };
  struct Stats {
    Options options;
    std::chrono::milliseconds step{0};  // at least this long between two entries, except the newest one
    size_t bytes = 0;
    size_t entries = 0;
    std::optional<int64_t> oldest_unix_ms = {};
  };

  static constexpr int64_t kMaxEntries = 720;
  static constexpr int64_t kCloser = 6;  // how much closer than their mean distance the newest entries are, at most

  explicit History(Options options) : options_(options) {}

  void Add(std::shared_ptr<const Snapshot> snapshot, std::chrono::steady_clock::time_point now);
  // The next Add drops entries beyond the new limits.
  void SetOptions(const Options& options);
  // The oldest first.
  [[nodiscard]] std::vector<Entry> Entries() const;
  [[nodiscard]] Stats stats() const;

 private:
  struct Kept {
    Entry entry;
    std::chrono::steady_clock::time_point at;
    size_t bytes = 0;  // of the snapshot
    size_t layout_bytes = 0;
  };

  // The shortest distance of two entries.
  [[nodiscard]] std::chrono::milliseconds Step() const PERSIA_REQUIRES(mutex_);
  void Drop(size_t entry) PERSIA_REQUIRES(mutex_);
  // The entry that a chart misses least. REQUIRES: there are more than kAlwaysKept.
  [[nodiscard]] size_t LeastMissed(std::chrono::steady_clock::time_point now) const PERSIA_REQUIRES(mutex_);
  // Whether the entry shares the layout of the one before it: the layout then counts once for both.
  [[nodiscard]] bool SharesLayout(size_t entry) const PERSIA_REQUIRES(mutex_);

  mutable Mutex mutex_;
  Options options_ PERSIA_GUARDED_BY(mutex_);
  std::optional<std::chrono::steady_clock::time_point> begin_ PERSIA_GUARDED_BY(mutex_);  // the first Add
  int64_t begin_unix_ms_ PERSIA_GUARDED_BY(mutex_) = 0;
  std::deque<Kept> kept_ PERSIA_GUARDED_BY(mutex_);
  size_t bytes_ PERSIA_GUARDED_BY(mutex_) = 0;             // of values
  size_t bytes_of_layouts_ PERSIA_GUARDED_BY(mutex_) = 0;  // each once for adjacent entries that share it
};

}  // namespace persia::agent
