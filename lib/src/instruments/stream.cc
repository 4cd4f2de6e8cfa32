#include "persia/metrics/stream.h"

#include <atomic>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "cells.h"
#include "registry.h"

namespace persia::metrics {
inline namespace abi_1 {

// stream.h, a public header, repeats these offsets, since segment_format.h is not public.
static_assert(segment::kStreamPositiveSum == 1 && segment::kStreamNegativeSum == 2);
static_assert(segment::kStreamNegatives == 3 && segment::kStreamZeros == 4 && segment::kStreamFirstBucket == 5);

Stream::Stream(std::string_view group, std::string_view name, const Description& about) noexcept
    : slot_(Registry::Get().FindOrAddChild(
          Registry::Get().FindOrAddFamily({segment::Kind::kStream, group, name, about.help, about.unit}), about.labels)) {}

void Stream::AddSlow(double value, uint64_t count) noexcept {
  if (count == 0) return;
  CommonCell(slot_)->store(internal::BitsOf(value), std::memory_order_relaxed);
  if (!internal::IsNan(value)) {
    AddDouble(slot_ + SumOf(value), count == 1 ? value : value * static_cast<double>(count));
    AddWhole(slot_ + CountOf(value), count);
  }
}

StreamValue Stream::Value() const noexcept { return Registry::Get().StreamAt(slot_); }

}  // namespace abi_1
}  // namespace persia::metrics
