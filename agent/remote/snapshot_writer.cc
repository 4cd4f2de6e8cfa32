#include "remote/snapshot_writer.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "remote/write_request.h"

namespace persia::agent {
namespace {

// Below this, the clock need not be wrong: two collections may fall into one millisecond.
constexpr int64_t kReportedLagMs = 1000;

}  // namespace

SnapshotWriter::SnapshotWriter(Options options) : options_(std::move(options)), last_ms_(options_.queue->last_timestamp_ms()) {
  LoadFormerSeries();
}

// A former agent's series count as ended until a snapshot shows them.
void SnapshotWriter::LoadFormerSeries() {
  if (options_.active->loaded()) return;
  const SeriesTable former = options_.active->Load();
  for (size_t i = 0; i < former.size(); ++i) ended_.emplace_back(former.labels(i));
}

void SnapshotWriter::Write(const std::shared_ptr<const Snapshot>& snapshot) {
  if (snapshot == nullptr || snapshot->layout == nullptr) return;
  LoadFormerSeries();
  const int64_t former_ms = last_ms_.value_or(0);
  const auto collected = std::chrono::time_point_cast<std::chrono::milliseconds>(snapshot->collected_at);
  const int64_t timestamp_ms = NextTimestamp(collected.time_since_epoch().count());
  const bool has_new_layout = TakeLayout(snapshot->layout);
  plan_->Values(snapshot->values, bits_);
  duplicates_ += plan_->conflicting();
  UpdateActive();
  if (has_new_layout) AppendZeros(former_ms, timestamp_ms);
  AppendSamples(*snapshot, timestamp_ms);
  AppendStaleMarkers(timestamp_ms);
  ++snapshots_;
}

// Compares the series that are shown with those that were shown before.
void SnapshotWriter::UpdateActive() {
  const SeriesTable& series = plan_->series();
  // After a restart, nearly all ended series are shown again.
  std::erase_if(ended_, [&](const std::string& labels) {
    const auto shown = series.Find(labels);
    if (shown && bits_[*shown] != kAbsent) {
      active_[*shown] = true;
      return true;
    }
    // A rule may have made native histograms of its numbers, or the reverse: the database has one series of both.
    const auto same = series.Find(IsNativeSeries(labels) ? std::string(LabelsOfSeries(labels)) : kNativeMark + labels);
    return same && bits_[*same] != kAbsent;
  });
  bool has_new = false;
  size_t shown = 0;
  for (size_t i = 0; i < bits_.size(); ++i) {
    const bool is_shown = bits_[i] != kAbsent;
    shown += is_shown ? 1 : 0;
    if (is_shown == active_[i]) continue;
    active_[i] = is_shown;
    has_new = has_new || is_shown;
    if (!is_shown) ended_.emplace_back(series.labels(i));
  }
  series_ = shown;
  if (has_new || options_.active->unsaved()) SaveActive();
}

void SnapshotWriter::EndSeries() {
  LoadFormerSeries();
  for (size_t i = 0; i < active_.size(); ++i)
    if (active_[i]) ended_.emplace_back(plan_->series().labels(i));
  active_.assign(active_.size(), false);
  if (ended_.empty()) return;
  const int64_t now = options_.queue->now_ms();
  ForgetTimeAhead(now);
  AppendStaleMarkers(last_ms_ ? NextTimestamp(*last_ms_ + 1) : NextTimestamp(now));
}

// A wrong clock's time would be used until the right clock reaches it, perhaps for years.
void SnapshotWriter::ForgetTimeAhead(int64_t now_ms) {
  if (!last_ms_ || *last_ms_ <= now_ms + DiskQueue::kMaxClockLeadMs) return;
  LogWarning("remote.write",
             "the newest sample has the time " + std::to_string(*last_ms_) + " ms, and the clock says " +
                 std::to_string(now_ms) +
                 " ms: one of them is wrong by more than an hour; new samples have the clock's time, and a database may refuse "
                 "them for series with later samples");
  last_ms_.reset();
}

int64_t SnapshotWriter::NextTimestamp(int64_t collected_ms) {
  ForgetTimeAhead(collected_ms);
  const int64_t last = last_ms_.value_or(collected_ms - 1);
  if (last >= collected_ms + kReportedLagMs && !std::exchange(is_clock_reported_, true)) {
    LogWarning(
        "remote.write",
        "the clock is " + std::to_string((last - collected_ms) / 1000) +
            " s behind the newest sample: until it catches up, samples are one millisecond apart, since databases refuse "
            "older samples");
  }
  if (last < collected_ms) is_clock_reported_ = false;
  last_ms_ = std::max(collected_ms, last + 1);
  return *last_ms_;
}

// False: it is the layout of the last snapshot.
bool SnapshotWriter::TakeLayout(const std::shared_ptr<const Layout>& layout) {
  if (layout == layout_) return false;
  auto plan = std::make_unique<const SeriesPlan>(*layout, options_.rules, options_.sends_native);
  std::vector<bool> active(plan->series().size());
  for (size_t i = 0; i < active_.size(); ++i) {
    if (!active_[i]) continue;
    if (const auto same = plan->series().Find(plan_->series().labels(i)))
      active[*same] = true;
    else
      ended_.emplace_back(plan_->series().labels(i));
  }
  if (plan->conflicting() > 0 && (plan_ == nullptr || plan_->conflicting() == 0)) {
    LogWarning("remote.write",
               std::to_string(plan->conflicting()) +
                   " series are not sent, since write_relabel_configs leave them no name or the labels of another series: " +
                   plan->example());
  }
  plan_ = std::move(plan);
  layout_ = layout;
  active_ = std::move(active);
  return true;
}

void SnapshotWriter::SaveActive() {
  std::vector<std::string_view> labels;
  for (size_t i = 0; i < active_.size(); ++i)
    if (active_[i]) labels.push_back(plan_->series().labels(i));
  labels.insert(labels.end(), ended_.begin(), ended_.end());
  options_.active->Save(labels);
}

// For counts that began after the former snapshot: their series have no later sample, and were not above 0 since. Zeros
// are in separate requests: if the target refuses one as too old, only zeros are lost.
void SnapshotWriter::AppendZeros(int64_t former_ms, int64_t timestamp_ms) {
  const int64_t earliest_ms = std::max(former_ms, timestamp_ms - options_.max_zero_age_ms);
  // Nothing: the series needs none.
  const auto zero_ms = [&](size_t series) -> std::optional<int64_t> {
    const int64_t created_ms = plan_->created_ms()[series];
    if (created_ms <= 0 || created_ms < earliest_ms || !(std::bit_cast<double>(bits_[series]) > 0)) return std::nullopt;
    // If a series was registered after the former snapshot was read, its zero has the time of that snapshot.
    const int64_t at = std::max(created_ms, former_ms + 1);
    return at < timestamp_ms ? std::optional(at) : std::nullopt;
  };
  const SeriesTable& series = plan_->series();
  for (size_t i = 0; i < series.size(); ++i) {
    const auto at = IsNativeSeries(series.labels(i)) ? std::nullopt : zero_ms(i);
    if (!at) continue;
    request_.Add(series.labels(i), std::bit_cast<uint64_t>(0.0), *at);
    if (RequestIsFull()) AppendRequest(/*is_native=*/false, timestamp_ms);
  }
  AppendRequest(/*is_native=*/false, timestamp_ms);
  for (const SeriesPlan::Native& native : plan_->natives()) {
    const auto at = zero_ms(native.series);
    if (!at) continue;
    request_.AddEmptyHistogram(LabelsOfSeries(series.labels(native.series)), *native.buckets, *at);
    if (RequestIsFull()) AppendRequest(/*is_native=*/true, timestamp_ms);
  }
  AppendRequest(/*is_native=*/true, timestamp_ms);
}

void SnapshotWriter::AppendSamples(const Snapshot& snapshot, int64_t timestamp_ms) {
  const SeriesTable& series = plan_->series();
  for (size_t i = 0; i < series.size(); ++i) {
    const std::string_view labels = series.labels(i);
    if (bits_[i] == kAbsent || IsNativeSeries(labels)) continue;
    request_.Add(labels, bits_[i], timestamp_ms);
    if (RequestIsFull()) AppendRequest(/*is_native=*/false, timestamp_ms);
  }
  AppendRequest(/*is_native=*/false, timestamp_ms);
  for (const SeriesPlan::Native& native : plan_->natives()) {
    if (bits_[native.series] == kAbsent) continue;
    const double* const values = snapshot.values.data() + native.first_value;
    request_.AddHistogram(LabelsOfSeries(series.labels(native.series)), *native.buckets, *values, values + 1, timestamp_ms);
    if (RequestIsFull()) AppendRequest(/*is_native=*/true, timestamp_ms);
  }
  AppendRequest(/*is_native=*/true, timestamp_ms);
}

// Markers that the queue refuses are written with the next snapshot, up to a limit. The file of active series lists them
// already.
void SnapshotWriter::AppendStaleMarkers(int64_t timestamp_ms) {
  SeriesTable unique;
  for (const std::string& labels : ended_) unique.Add(labels);
  ended_.clear();
  for (const bool is_native : {false, true}) {
    std::vector<size_t> in_request;
    const auto write = [&] {
      // After a power cut, too, an ended series is in the file or has its marker.
      if (!AppendRequest(is_native, timestamp_ms, DiskQueue::Durability::kPowerCut))
        for (const size_t i : in_request) ended_.emplace_back(unique.labels(i));
      in_request.clear();
    };
    for (size_t i = 0; i < unique.size(); ++i) {
      if (IsNativeSeries(unique.labels(i)) != is_native) continue;
      const std::string_view labels = LabelsOfSeries(unique.labels(i));
      if (is_native)
        request_.AddStaleHistogram(labels, timestamp_ms);
      else
        request_.Add(labels, kStaleMarker, timestamp_ms);
      in_request.push_back(i);
      if (RequestIsFull()) write();
    }
    write();
  }
  const bool some_written = ended_.size() < unique.size();
  if (ended_.size() > options_.max_waiting_markers) {
    const size_t excess = ended_.size() - options_.max_waiting_markers;
    ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(excess));
    ends_given_up_ += excess;
  }
  if (!some_written) return;
  SaveActive();
}

bool SnapshotWriter::AppendRequest(bool is_native, int64_t timestamp_ms, DiskQueue::Durability durability) {
  if (request_.samples() == 0) return true;
  SnappyCompress(request_.bytes(), body_);
  const QueueRecord record{.timestamp_ms = timestamp_ms, .samples = request_.samples(), .is_native = is_native};
  const bool ok = options_.queue->Append(record, body_, durability).ok();
  request_.Clear();
  return ok;
}

}  // namespace persia::agent
