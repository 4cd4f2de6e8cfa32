#include "web/history.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/foreign_memory.h"

namespace persia::agent {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr size_t kAlwaysKept = 3;  // the oldest and the newest two

// Approximately.
size_t BytesOf(const Layout& layout) {
  const auto text = [](const std::string& s) { return sizeof(s) + (s.capacity() > 15 ? s.capacity() + 1 : 0); };
  size_t bytes = sizeof(layout);
  for (const FamilyLayout& family : layout.families) {
    bytes += sizeof(family) + text(family.name) + text(family.help) + family.bounds.size() * sizeof(double);
    for (const SeriesLayout& series : family.series) bytes += sizeof(series) + series.labels.bytes();
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
  if (kept_.size() > 1 && kept_.back().at - kept_[kept_.size() - 2].at < Step() - Step() / 10) Drop(kept_.size() - 1);
  const bool shared = !kept_.empty() && kept_.back().entry.snapshot->layout == snapshot->layout;
  const size_t layout_bytes = shared ? kept_.back().layout_bytes : BytesOf(*snapshot->layout);
  const size_t bytes = BytesOf(*snapshot);
  const int64_t unix_ms = begin_unix_ms_ + duration_cast<milliseconds>(now - *begin_).count();
  bytes_ += bytes;
  bytes_of_layouts_ += shared ? 0 : layout_bytes;
  kept_.push_back({{unix_ms, std::move(snapshot)}, now, bytes, layout_bytes});
  // The labels of former layouts may be of processes that ended.
  while (kept_.size() > 1) {
    const bool has_old_layouts = bytes_of_layouts_ - layout_bytes > ForeignShare::Limit() / 8;
    if (now - kept_.front().at > options_.span || has_old_layouts) {
      Drop(0);
    } else if (bytes_ + bytes_of_layouts_ > options_.max_bytes) {
      const bool have_room = bytes_of_layouts_ - layout_bytes < options_.max_bytes / 4;  // former layouts
      Drop(kept_.size() > kAlwaysKept && have_room ? LeastMissed(now) : 0);
    } else {
      break;
    }
  }
}

bool History::SharesLayout(size_t entry) const {
  return entry > 0 && kept_[entry].entry.snapshot->layout == kept_[entry - 1].entry.snapshot->layout;
}

void History::Drop(size_t entry) {
  const bool is_shared = SharesLayout(entry) || (entry + 1 < kept_.size() && SharesLayout(entry + 1));
  bytes_ -= kept_[entry].bytes;
  bytes_of_layouts_ -= is_shared ? 0 : kept_[entry].layout_bytes;
  kept_.erase(kept_.begin() + static_cast<ptrdiff_t>(entry));
}

// Neither the oldest entry nor one of the newest two: the next Add may replace the newest.
size_t History::LeastMissed(std::chrono::steady_clock::time_point now) const {
  size_t least = 1;
  double smallest = std::numeric_limits<double>::infinity();
  for (size_t i = 1; i + 2 < kept_.size(); ++i) {
    const std::chrono::duration<double> gap = kept_[i + 1].at - kept_[i - 1].at;
    const std::chrono::duration<double> age = now - kept_[i].at;
    if (gap < smallest * age) {
      smallest = gap / age;
      least = i;
    }
  }
  return least;
}

// As many entries as there is room for beside their layout, or as half of the memory has, if layouts change.
milliseconds History::Step() const {
  int64_t entries = kMaxEntries;
  if (!kept_.empty()) {
    const size_t room =
        std::max(options_.max_bytes / 2, options_.max_bytes - std::min(options_.max_bytes, kept_.back().layout_bytes));
    entries = std::clamp(static_cast<int64_t>(room / kept_.back().bytes), int64_t{1}, kMaxEntries);
  }
  return std::max(options_.span / kMaxEntries, options_.span / (entries * kCloser));
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
