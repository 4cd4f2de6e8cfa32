#include "web/history.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/foreign_memory.h"

namespace persia::agent {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

// Approximately.
size_t BytesOf(const Layout& layout) {
  const auto text = [](const std::string& s) { return sizeof(s) + (s.capacity() > 15 ? s.capacity() + 1 : 0); };
  size_t bytes = sizeof(layout);
  for (const FamilyLayout& family : layout.families) {
    bytes += sizeof(family) + text(family.name) + text(family.help) + family.bounds.size() * sizeof(double);
    for (const SeriesLayout& series : family.series) {
      bytes += sizeof(series) + series.labels.bytes();
    }
  }
  return bytes;
}

// Without its layout.
size_t BytesOf(const Snapshot& snapshot) { return sizeof(Snapshot) + snapshot.values.capacity() * sizeof(double); }

}  // namespace

void History::Add(std::shared_ptr<const Snapshot> snapshot, std::chrono::steady_clock::time_point now) {
  const MutexLock lock(mutex_);
  if (options_.span.count() == 0 || snapshot == nullptr) {
    kept_.clear();
    bytes_ = bytes_of_layouts_ = 0;
    return;
  }
  if (!begin_) {
    begin_ = now;
    begin_unix_ms_ = duration_cast<milliseconds>(snapshot->collected_at.time_since_epoch()).count();
  }
  // A collection may come a little early.
  if (kept_.size() > 1 && kept_.back().at - kept_[kept_.size() - 2].at < Step() - Step() / 10) DropNewest();
  const bool shared = !kept_.empty() && kept_.back().entry.snapshot->layout == snapshot->layout;
  const size_t layout_bytes = shared ? kept_.back().layout_bytes : BytesOf(*snapshot->layout);
  const size_t bytes = BytesOf(*snapshot);
  const int64_t unix_ms = begin_unix_ms_ + duration_cast<milliseconds>(now - *begin_).count();
  bytes_ += bytes;
  bytes_of_layouts_ += shared ? 0 : layout_bytes;
  kept_.push_back({{unix_ms, std::move(snapshot)}, now, bytes, layout_bytes});
  // The labels of former layouts may be of processes that ended.
  while (kept_.size() > 1 && (now - kept_.front().at > options_.span || bytes_ + bytes_of_layouts_ > options_.max_bytes ||
                              bytes_of_layouts_ - layout_bytes > ForeignShare::Limit() / 8)) {
    DropOldest();
  }
}

bool History::SharesLayout(size_t entry) const {
  return entry > 0 && kept_[entry].entry.snapshot->layout == kept_[entry - 1].entry.snapshot->layout;
}

// REQUIRES: there is another one.
void History::DropOldest() {
  bytes_ -= kept_.front().bytes;
  bytes_of_layouts_ -= SharesLayout(1) ? 0 : kept_.front().layout_bytes;
  kept_.pop_front();
}

void History::DropNewest() {
  bytes_ -= kept_.back().bytes;
  bytes_of_layouts_ -= SharesLayout(kept_.size() - 1) ? 0 : kept_.back().layout_bytes;
  kept_.pop_back();
}

// As many entries as there is room for beside their layout, or as half of the memory has, if layouts change.
milliseconds History::Step() const {
  int64_t entries = kMaxEntries;
  if (!kept_.empty()) {
    const size_t room =
        std::max(options_.max_bytes / 2, options_.max_bytes - std::min(options_.max_bytes, kept_.back().layout_bytes));
    entries = std::clamp(static_cast<int64_t>(room / kept_.back().bytes), int64_t{1}, kMaxEntries);
  }
  return options_.span / entries;
}

void History::SetOptions(const Options& options) {
  const MutexLock lock(mutex_);
  options_ = options;
}

std::vector<History::Entry> History::Entries() const {
  const MutexLock lock(mutex_);
  std::vector<Entry> entries;
  entries.reserve(kept_.size());
  for (const Kept& kept : kept_) entries.push_back(kept.entry);
  return entries;
}

History::Stats History::stats() const {
  const MutexLock lock(mutex_);
  Stats stats{.options = options_, .step = Step(), .bytes = bytes_ + bytes_of_layouts_, .entries = kept_.size()};
  if (!kept_.empty()) stats.oldest_unix_ms = kept_.front().entry.unix_ms;
  return stats;
}

}  // namespace persia::agent
