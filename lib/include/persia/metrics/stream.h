// Streams: measured values whose metric type the program does not fix. The model is torchelastic's `add_value`.
//
//   persia::metrics::Stream latency("my_app", "calculate_latency");
//   latency.Add(12.5);
//
// A rule of the agent decides how a stream is exported: as its last value (the default), its sum, the distribution of its
// values, or quantiles. The rule can change while the job runs, so a stream keeps the data for all of them: the last value, the
// sums, and exponential buckets from 2^-20 to 2^20, four per octave.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "persia/metrics/export.h"
#include "persia/metrics/internal/bits.h"
#include "persia/metrics/internal/bucket_search.h"
#include "persia/metrics/internal/lane.h"
#include "persia/metrics/labels.h"
#include "persia/metrics/values.h"

namespace persia::metrics {
inline namespace abi_1 {

// A handle like those in instruments.h: small, its copies share the stream, and any thread can make and use it at any time.
class PERSIA_METRICS_API Stream {
 public:
  // Records nothing.
  Stream() noexcept = default;
  // The stream (`group`, `name`) with the labels of `about`. Exported as `<group>_<name>`, unless a rule says otherwise.
  Stream(std::string_view group, std::string_view name, const Description& about = {}) noexcept;
  // Not for users: the stream at `slot`.
  static Stream AtSlot(uint32_t slot) noexcept {
    Stream stream;
    stream.slot_ = slot;
    return stream;
  }

  // Records a value. A NaN becomes the last value, but is not added to sums and buckets. The last of several concurrent
  // calls sets the last value. Thread safety: as in instruments.h.
  void Add(double value) noexcept {
    internal::Cell* chunk = internal::ChunkOf(internal::tls_lane, slot_);
    internal::Cell* common = internal::ReadChunk(internal::common_lane, slot_, std::memory_order_relaxed);
    if (PERSIA_METRICS_UNLIKELY(chunk == nullptr || common == nullptr || internal::IsNan(value))) return AddSlow(value, 1);
    // Relaxed: no other memory is ordered by a cell.
    internal::CellIn(common, slot_).store(internal::BitsOf(value), std::memory_order_relaxed);
    internal::Cell* cells = &internal::CellIn(chunk, slot_);
    internal::AddDoubleTo(cells[SumOf(value)], value);
    internal::AddTo(cells[CountOf(value)], 1);
  }
  // Records `count` values of `value` at once.
  void Add(double value, uint64_t count) noexcept { AddSlow(value, count); }

  // The count and the sum of the values, and the last one. As in instruments.h.
  [[nodiscard]] StreamValue Value() const noexcept;

 private:
  template <class Instrument>
  friend class Family;

  // Offsets from the slot, as in segment_format.md: sums of positive and negative values, counts of negative values and zeros,
  // and the buckets of positive values.
  static uint32_t SumOf(double value) noexcept { return value < 0 ? 2 : 1; }
  static uint32_t CountOf(double value) noexcept {
    if (PERSIA_METRICS_LIKELY(value > 0)) return 5 + internal::StreamBucketOf(value);
    return value < 0 ? 3 : 4;
  }
  void AddSlow(double value, uint64_t count) noexcept;

  uint32_t slot_ = internal::kScratchSlot;
};

}  // namespace abi_1
}  // namespace persia::metrics
