#include "history/history.h"

#include <utility>

namespace persia::agent {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

// About what its strings and tables take.
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

}  // namespace

void History::Add(std::shared_ptr<const Snapshot> snapshot, std::chrono::steady_clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (options_.span.count() == 0 || snapshot == nullptr) {
    kept_.clear();
    bytes_ = 0;
    return;
  }
  if (!begin_) {
    begin_ = now;
    begin_unix_ms_ = duration_cast<milliseconds>(snapshot->collected_at.time_since_epoch()).count();
  }
  // Ticks are not exact: one that comes a little early counts.
  if (!kept_.empty() && now - kept_.back().at < Step() - Step() / 10) {
    return;
  }
  const bool shares = !kept_.empty() && kept_.back().entry.snapshot->layout == snapshot->layout;
  const size_t bytes =
      sizeof(Snapshot) + snapshot->values.capacity() * sizeof(double) + (shares ? 0 : BytesOf(*snapshot->layout));
  const int64_t unix_ms = begin_unix_ms_ + duration_cast<milliseconds>(now - *begin_).count();
  kept_.push_back({{unix_ms, std::move(snapshot)}, now, bytes});
  bytes_ += bytes;
  while (kept_.size() > 1 && (bytes_ > options_.max_bytes || now - kept_.front().at > options_.span)) {
    DropOldest();
  }
}

void History::DropOldest() {
  const Kept oldest = std::move(kept_.front());
  kept_.pop_front();
  bytes_ -= oldest.bytes;
  if (!kept_.empty() && kept_.front().entry.snapshot->layout == oldest.entry.snapshot->layout) {
    const size_t layout = BytesOf(*oldest.entry.snapshot->layout);  // which the next one holds alone now
    kept_.front().bytes += layout;
    bytes_ += layout;
  }
}

void History::SetOptions(const Options& options) {
  const std::lock_guard lock(mutex_);
  options_ = options;
}

std::vector<History::Entry> History::Entries() const {
  const std::lock_guard lock(mutex_);
  std::vector<Entry> entries;
  entries.reserve(kept_.size());
  for (const Kept& kept : kept_) {
    entries.push_back(kept.entry);
  }
  return entries;
}

History::Stats History::stats() const {
  const std::lock_guard lock(mutex_);
  Stats stats{.options = options_, .step = Step(), .bytes = bytes_, .entries = kept_.size()};
  if (!kept_.empty()) {
    stats.oldest_unix_ms = kept_.front().entry.unix_ms;
  }
  return stats;
}

}  // namespace persia::agent
