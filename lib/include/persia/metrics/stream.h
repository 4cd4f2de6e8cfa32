// Streams: values of which a program says no more than that they were measured now. The model is torchelastic's `add_value`.
//
//   persia::metrics::Stream latency("my_app", "calculate_latency");
//   latency.Add(12.5);
//
// What a stream is shown as - its last value (the default), its sum, the distribution of its values, or quantiles of it - is a
// rule of the agent, which can be changed while the job runs. So a stream keeps what each of them needs: the last value, the
// sums, and exponential buckets, four an octave, from 2^-20 to 2^20.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "persia/metrics/export.h"
#include "persia/metrics/internal/fast_math.h"
#include "persia/metrics/internal/lane.h"
#include "persia/metrics/internal/stream_buckets.h"
#include "persia/metrics/labels.h"

namespace persia::metrics {

// A handle, as those in instruments.h: small, copies share the stream, made and used whenever and in whatever thread.
class PERSIA_METRICS_API Stream {
 public:
  // Records nothing.
  Stream() noexcept = default;
  Stream(std::string_view group, std::string_view name, const Description& about = {}) noexcept;
  // Not for users: the stream that has this slot.
  static Stream AtSlot(uint32_t slot) noexcept {
    Stream stream;
    stream.slot_ = slot;
    return stream;
  }

  // Records a value. A NaN becomes the last value and has no part in sums and buckets. The last of several concurrent calls is
  // the last value. Thread safety: any thread, without a lock, a system call, an allocation or a look at the clock.
  void Add(double value) noexcept {
    internal::Cell* chunk = internal::ChunkOf(internal::tls_lane, slot_);
    internal::Cell* common = internal::ReadChunk(internal::common_lane, slot_, std::memory_order_relaxed);
    if (chunk == nullptr || common == nullptr || internal::IsNan(value)) [[unlikely]] {
      return AddSlow(value);
    }
    // Relaxed: a cell orders nothing but itself.
    internal::CellIn(common, slot_).store(std::bit_cast<uint64_t>(value), std::memory_order_relaxed);
    internal::Cell* cells = &internal::CellIn(chunk, slot_);
    internal::Cell& sum = cells[SumOf(value)];
    sum.store(std::bit_cast<uint64_t>(std::bit_cast<double>(sum.load(std::memory_order_relaxed)) + value),
              std::memory_order_relaxed);
    internal::AddTo(cells[CountOf(value)], 1);
  }

 private:
  // Cells behind the slot, as the segment's format has them: the sums of positive and of negative values, the counts of
  // negative values and of zeros, the buckets of positive ones.
  static uint32_t SumOf(double value) noexcept { return value < 0 ? 2 : 1; }
  static uint32_t CountOf(double value) noexcept {
    if (value > 0) [[likely]] {
      return 5 + internal::StreamBucketOf(value);
    }
    return value < 0 ? 3 : 4;
  }
  void AddSlow(double value) noexcept;

  uint32_t slot_ = internal::kScratchSlot;
};

}  // namespace persia::metrics
