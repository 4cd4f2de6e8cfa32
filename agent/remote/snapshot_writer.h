// Writes snapshots to a disk queue as requests: a sample of each series that is shown, and a stale marker for each series that
// is no longer shown.
//
// A sample's timestamp is the time of its collection. Timestamps always increase, also after a restart of the agent and when
// the clock is set back. Native histograms are in requests of their own: a target may refuse those.
//
// A count (a counter, or the buckets, sum and count of a histogram or summary) that began after the former snapshot, and is
// above 0 in this one, gets a sample of 0 at the time when it began, so that increase() includes its first value.
// An older count gets none: its series may have later samples.
//
// Thread safety: none, except that the numbers may be read from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/snapshot.h"
#include "remote/active_series.h"
#include "remote/disk_queue.h"
#include "remote/series_plan.h"
#include "remote/write_request.h"

namespace persia::agent {

class SnapshotWriter {
 public:
  struct Options {
    DiskQueue* queue = nullptr;
    ActiveSeries* active = nullptr;
    RelabelRules rules{};
    bool sends_native = false;  // native histograms as such, instead of in their classic form
    // Of one request.
    uint32_t max_samples = 10'000;
    size_t max_bytes = 4 << 20;  // before compression
    // A count that began earlier gets no sample of 0. Prometheus refuses samples an hour older than its newest one.
    int64_t max_zero_age_ms = 30 * 60 * 1000;
    // Limit of stale markers that wait while the disk is full; beyond it, the oldest are dropped.
    size_t max_waiting_markers = 1'000'000;
  };

  // Loads the active series of the former agent.
  explicit SnapshotWriter(Options options);

  void Write(const std::shared_ptr<const Snapshot>& snapshot);
  // Writes the stale markers of all series, also of a former agent's, with a time just after their last sample.
  void EndSeries();

  // Shown in the last snapshot.
  [[nodiscard]] size_t series() const { return series_; }
  // Totals: snapshots written to the queue; samples left out since relabelling gave their series the labels of another; stale
  // markers given up.
  [[nodiscard]] uint64_t snapshots() const { return snapshots_; }
  [[nodiscard]] uint64_t duplicates() const { return duplicates_; }
  [[nodiscard]] uint64_t ends_given_up() const { return ends_given_up_; }

 private:
  void LoadFormerSeries();
  int64_t NextTimestamp(int64_t collected_ms);
  void ForgetTimeAhead(int64_t now_ms);
  bool TakeLayout(const std::shared_ptr<const Layout>& layout);
  void UpdateActive();
  void SaveActive();
  void AppendZeros(int64_t former_ms, int64_t timestamp_ms);
  void AppendSamples(const Snapshot& snapshot, int64_t timestamp_ms);
  void AppendStaleMarkers(int64_t timestamp_ms);
  bool AppendRequest(bool is_native, int64_t timestamp_ms, DiskQueue::Durability durability = DiskQueue::Durability::kKill);
  [[nodiscard]] bool RequestIsFull() const {
    return request_.samples() >= options_.max_samples || request_.bytes().size() >= options_.max_bytes;
  }

  const Options options_;
  std::shared_ptr<const Layout> layout_;
  std::unique_ptr<const SeriesPlan> plan_;  // of layout_
  std::vector<bool> active_;                // of the plan's series: whether it was sent, and not ended
  std::vector<std::string> ended_;          // labels of series whose stale marker is not in the queue yet
  std::vector<uint64_t> bits_;              // the values of this snapshot
  WriteRequest request_;
  std::string body_;                // reused
  std::optional<int64_t> last_ms_;  // the newest timestamp that was written
  bool is_clock_reported_ = false;
  std::atomic<size_t> series_ = 0;
  std::atomic<uint64_t> snapshots_ = 0;
  std::atomic<uint64_t> duplicates_ = 0;
  std::atomic<uint64_t> ends_given_up_ = 0;
};

}  // namespace persia::agent
