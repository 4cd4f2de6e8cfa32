// Writes snapshots into a target's queue, as requests: a sample of each series that is shown, and a stale marker for each that
// is shown no longer.
//
// Timestamps are those of the collections, and rise strictly, also over a restart of the agent and when the clock is set back.
// Series are spread over shards by their labels; the number of shards grows with that of the series, and a new generation of
// the queue begins when it does.
//
// Thread safety: none; stats from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/snapshot.h"
#include "remote/active_series.h"
#include "remote/series_plan.h"
#include "remote/write_queue.h"
#include "remote/write_request.h"

namespace persia::agent {

class SnapshotWriter {
 public:
  struct Options {
    WriteQueue* queue = nullptr;
    ActiveSeries* active = nullptr;
    RelabelRules rules{};
    uint32_t max_shards = 4;
    // Of one request.
    uint32_t max_samples = 10'000;
    size_t max_bytes = 4 << 20;  // before compression
    // One shard more for so many.
    size_t series_per_shard = 50'000;
    // Ends that wait for room, since the disk is full; the oldest are given up.
    size_t most_ends = 1'000'000;
    std::function<void(const std::string& message)> warn = [](const auto&) {};
  };

  // Reads which series an agent before this one has left.
  explicit SnapshotWriter(Options options);

  void Write(const std::shared_ptr<const Snapshot>& snapshot);
  // Ends all series, a moment after their last sample; also those of an agent before this one.
  void EndSeries();

  [[nodiscard]] uint32_t shards() const { return shards_; }
  // Of the last snapshot.
  [[nodiscard]] size_t series() const { return series_; }
  // That are in the queue; a total.
  [[nodiscard]] uint64_t snapshots() const { return snapshots_; }
  // Samples left out since relabelling gave two series the same labels; a total.
  [[nodiscard]] uint64_t duplicates() const { return duplicates_; }
  // Ends that were given up; a total.
  [[nodiscard]] uint64_t ends_given_up() const { return ends_given_up_; }

 private:
  void TakeLeft();
  int64_t NextTimestamp(int64_t collected_ms);
  void ForgetTimeAhead(int64_t now_ms);
  void TakeLayout(const std::shared_ptr<const Layout>& layout);
  void Spread();
  void Save(bool with_ended);
  void AppendSamples(int64_t timestamp_ms);
  void AppendEnds(int64_t timestamp_ms);
  bool Append(uint32_t shard, int64_t timestamp_ms);
  [[nodiscard]] bool IsFull() const {
    return request_.samples() >= options_.max_samples || request_.bytes().size() >= options_.max_bytes;
  }

  const Options options_;
  std::shared_ptr<const Layout> layout_;
  std::unique_ptr<const SeriesPlan> plan_;  // of layout_
  std::vector<bool> active_;                // of the plan's series: sent, and not ended
  std::vector<std::string> ended_;          // their labels; the end is not in the queue yet
  std::vector<std::vector<uint32_t>> series_of_shard_;
  std::vector<uint64_t> bits_;  // the values of this time
  WriteRequest request_;
  std::string body_;                // kept for its memory
  std::optional<int64_t> last_ms_;  // the newest timestamp that was given
  bool clock_told_ = false;
  std::atomic<uint32_t> shards_ = 0;
  std::atomic<size_t> series_ = 0;
  std::atomic<uint64_t> snapshots_ = 0;
  std::atomic<uint64_t> duplicates_ = 0;
  std::atomic<uint64_t> ends_given_up_ = 0;
};

}  // namespace persia::agent
