#include "remote/snapshot_writer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "remote/snappy_block.h"

namespace persia::agent {
namespace {

// A clock that is this far behind is not only two collections in one millisecond.
constexpr int64_t kToldBehindMs = 1000;

uint32_t ShardOf(uint64_t hash, uint32_t shards) { return static_cast<uint32_t>((hash >> 32) * shards >> 32); }

}  // namespace

SnapshotWriter::SnapshotWriter(Options options) : options_(std::move(options)), last_ms_(options_.queue->last_timestamp_ms()) {
  TakeLeft();
}

// Those of an agent before this one have ended, until a snapshot shows them.
void SnapshotWriter::TakeLeft() {
  if (options_.active->loaded()) return;
  const SeriesTable left = options_.active->Load();
  for (size_t i = 0; i < left.size(); ++i) ended_.emplace_back(left.labels(i));
}

void SnapshotWriter::Write(const std::shared_ptr<const Snapshot>& snapshot) {
  if (snapshot == nullptr || snapshot->layout == nullptr) return;
  TakeLeft();
  const auto collected = std::chrono::time_point_cast<std::chrono::milliseconds>(snapshot->collected_at);
  const int64_t timestamp_ms = NextTimestamp(collected.time_since_epoch().count());
  TakeLayout(snapshot->layout);
  plan_->Values(snapshot->values, bits_);
  duplicates_ += plan_->without_place();

  const SeriesTable& series = plan_->series();
  // What was taken for ended and is there again goes on: after a restart that is nearly all.
  std::erase_if(ended_, [&](const std::string& labels) {
    const auto there = series.Find(labels);
    if (!there || bits_[*there] == kAbsent) return false;
    active_[*there] = true;
    return true;
  });
  bool some_begin = false;
  size_t shown = 0;
  for (size_t i = 0; i < bits_.size(); ++i) {
    const bool is_shown = bits_[i] != kAbsent;
    shown += is_shown ? 1 : 0;
    if (is_shown == active_[i]) continue;
    active_[i] = is_shown;
    some_begin = some_begin || is_shown;
    if (!is_shown) ended_.emplace_back(series.labels(i));
  }
  series_ = shown;
  const auto wanted = static_cast<uint32_t>(std::min<size_t>(1 + shown / options_.series_per_shard, options_.max_shards));
  if (wanted > shards_) {
    shards_ = wanted;
    options_.queue->BeginGeneration();
    series_of_shard_.clear();
  }
  if (series_of_shard_.empty()) Spread();
  if (some_begin || options_.active->unsaved()) Save(/*with_ended=*/true);
  AppendSamples(timestamp_ms);
  AppendEnds(timestamp_ms);
  ++snapshots_;
}

void SnapshotWriter::EndSeries() {
  TakeLeft();
  for (size_t i = 0; i < active_.size(); ++i) {
    if (active_[i]) ended_.emplace_back(plan_->series().labels(i));
  }
  active_.assign(active_.size(), false);
  if (ended_.empty()) return;
  if (shards_ == 0) options_.queue->BeginGeneration();  // who was there before may have had more
  const int64_t now = options_.queue->now_ms();
  ForgetTimeAhead(now);
  AppendEnds(last_ms_ ? NextTimestamp(*last_ms_ + 1) : NextTimestamp(now));
}

// A clock that was far ahead once would else take the place of the right one until that has caught up, in years perhaps.
void SnapshotWriter::ForgetTimeAhead(int64_t now_ms) {
  if (!last_ms_ || *last_ms_ <= now_ms + WriteQueue::kMostAheadMs) return;
  options_.warn(
      "the newest sample that was sent has the time " + std::to_string(*last_ms_) + " ms, and the clock says " +
      std::to_string(now_ms) +
      " ms: one of them was wrong by more than an hour; samples have the clock's time from now on, and a database may "
      "refuse them for series that it has later samples of");
  options_.queue->BeginGeneration();
  last_ms_.reset();
}

int64_t SnapshotWriter::NextTimestamp(int64_t collected_ms) {
  ForgetTimeAhead(collected_ms);
  const int64_t last = last_ms_.value_or(collected_ms - 1);
  if (last >= collected_ms + kToldBehindMs && !std::exchange(clock_told_, true)) {
    options_.warn("the clock is " + std::to_string((last - collected_ms) / 1000) +
                  " s behind the newest sample that was sent: until it has caught up, samples are a millisecond apart, since a "
                  "database refuses what goes back");
  }
  if (last < collected_ms) clock_told_ = false;
  last_ms_ = std::max(collected_ms, last + 1);
  return *last_ms_;
}

void SnapshotWriter::TakeLayout(const std::shared_ptr<const Layout>& layout) {
  if (layout == layout_) return;
  auto plan = std::make_unique<const SeriesPlan>(*layout, options_.rules);
  std::vector<bool> active(plan->series().size());
  for (size_t i = 0; i < active_.size(); ++i) {
    if (!active_[i]) continue;
    if (const auto there = plan->series().Find(plan_->series().labels(i))) {
      active[*there] = true;
    } else {
      ended_.emplace_back(plan_->series().labels(i));
    }
  }
  if (plan->without_place() > 0 && (plan_ == nullptr || plan_->without_place() == 0)) {
    options_.warn(std::to_string(plan->without_place()) +
                  " series are not sent, since write_relabel_configs leave them no name or the labels of another one: " +
                  plan->example());
  }
  plan_ = std::move(plan);
  layout_ = layout;
  active_ = std::move(active);
  series_of_shard_.clear();
}

void SnapshotWriter::Spread() {
  series_of_shard_.assign(shards_, {});
  const SeriesTable& series = plan_->series();
  for (uint32_t i = 0; i < series.size(); ++i) series_of_shard_[ShardOf(series.hash(i), shards_)].push_back(i);
}

void SnapshotWriter::Save(bool with_ended) {
  std::vector<std::string_view> labels;
  for (size_t i = 0; i < active_.size(); ++i) {
    if (active_[i]) labels.push_back(plan_->series().labels(i));
  }
  if (with_ended) labels.insert(labels.end(), ended_.begin(), ended_.end());
  options_.active->Save(labels);
}

// A request of each shard in turn, so that all shards have something to send from the first on.
void SnapshotWriter::AppendSamples(int64_t timestamp_ms) {
  std::vector<size_t> next(shards_);
  for (bool more = true; more;) {
    more = false;
    for (uint32_t shard = 0; shard < shards_; ++shard) {
      const std::vector<uint32_t>& series = series_of_shard_[shard];
      for (size_t& i = next[shard]; i < series.size() && !IsFull(); ++i) {
        if (const uint64_t bits = bits_[series[i]]; bits != kAbsent) {
          request_.Add(plan_->series().labels(series[i]), bits, timestamp_ms);
        }
      }
      more = more || next[shard] < series.size();
      Append(shard, timestamp_ms);
    }
  }
}

// Those for which there is no room are tried again with the next snapshot, up to a bound. The list on disk names them already.
void SnapshotWriter::AppendEnds(int64_t timestamp_ms) {
  if (ended_.empty()) return;
  const uint32_t shards = std::max(1U, shards_.load());
  SeriesTable hashed;
  std::erase_if(ended_, [&hashed](const std::string& labels) { return !hashed.Add(labels); });
  std::vector<bool> appended(ended_.size());
  for (uint32_t shard = 0; shard < shards; ++shard) {
    std::vector<size_t> in_request;
    const auto flush = [&] {
      const bool good = Append(shard, timestamp_ms);
      for (const size_t i : in_request) appended[i] = good;
      in_request.clear();
    };
    for (size_t i = 0; i < ended_.size(); ++i) {
      if (ShardOf(hashed.hash(i), shards) != shard) continue;
      request_.Add(ended_[i], kStaleMarker, timestamp_ms);
      in_request.push_back(i);
      if (IsFull()) flush();
    }
    flush();
  }
  size_t i = 0;
  const size_t gone = std::erase_if(ended_, [&](const std::string&) { return appended[i++]; });
  if (ended_.size() > options_.most_ends) {
    const size_t too_many = ended_.size() - options_.most_ends;
    ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(too_many));
    ends_given_up_ += too_many;
  }
  if (gone > 0) Save(/*with_ended=*/true);
}

bool SnapshotWriter::Append(uint32_t shard, int64_t timestamp_ms) {
  if (request_.samples() == 0) return true;
  SnappyCompress(request_.bytes(), body_);
  const bool good =
      options_.queue->Append({.shard = shard, .samples = request_.samples(), .timestamp_ms = timestamp_ms}, body_).ok();
  request_.Clear();
  return good;
}

}  // namespace persia::agent
