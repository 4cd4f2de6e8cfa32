#include "bucket_index.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "native_grid.h"

namespace persia::metrics {
inline namespace abi_1 {
namespace {

using internal::BucketIndex;

constexpr uint32_t kMantissaBits = 52;

int64_t CellOf(double bound, uint32_t shift) { return std::bit_cast<int64_t>(bound) >> shift; }

// Whether each positive bound gets its own cell, and the cells, with one below and one above, are at most kMaxCells.
bool Fits(std::span<const double> positive, uint32_t shift) {
  for (size_t i = 1; i < positive.size(); ++i)
    if (CellOf(positive[i], shift) == CellOf(positive[i - 1], shift)) return false;
  return CellOf(positive.back(), shift) - CellOf(positive.front(), shift) + 3 <= BucketIndex::kMaxCells;
}

}  // namespace

BucketIndex MakeBucketIndex(std::span<const double> bounds) noexcept {
  if (bounds.empty()) return internal::kNoBounds;
  BucketIndex index;
  index.count = static_cast<uint32_t>(bounds.size());
  index.bounds = bounds.data();
  const auto not_positive = static_cast<size_t>(std::ranges::count_if(bounds, [](double bound) { return !(bound > 0); }));
  const std::span<const double> positive = bounds.subspan(not_positive);
  if (not_positive > 1 || positive.empty() || bounds.size() > UINT8_MAX) return index;
  for (index.shift = kMantissaBits; !Fits(positive, index.shift); --index.shift)
    if (index.shift == 1)  // a shift of 0 could overflow the difference of two cell numbers
      return index;
  if (not_positive > 0 && CellOf(positive.front(), index.shift) == 0)
    return index;  // the cell of the smallest positive bound would also hold +0, which may be equal to the other bound
  index.first = CellOf(positive.front(), index.shift) - 1;
  index.last = CellOf(positive.back(), index.shift) + 1 - index.first;
  size_t below = not_positive;
  for (int64_t cell = 1; cell <= index.last; ++cell) {
    index.starts[cell] = static_cast<uint8_t>(below);
    if (below < bounds.size() && CellOf(bounds[below], index.shift) == index.first + cell) ++below;
  }
  return index;
}

BucketIndex MakeNativeBucketIndex(std::span<const double> bounds) noexcept {
  BucketIndex index = MakeBucketIndex(bounds);
  const auto schema = static_cast<int>(-std::lround(std::log2(std::log2(bounds[1]) - std::log2(bounds[0]))));
  if (schema >= 0) {
    index.per_octave = int64_t{1} << schema;
    index.first_bound = segment::NearestNativeIndex(schema, bounds[0]);
  }
  return index;
}

namespace internal {

uint32_t BucketBySearch(const BucketIndex& index, double value) noexcept {
  const double* base = index.bounds;
  uint64_t left = index.count;
  if (index.per_octave > 0) {
    if (!(value > base[0])) return 0;
    if (value > base[index.count - 1]) return index.count;
    constexpr int64_t kExponentBias = 1023;
    const int64_t octave = (std::bit_cast<int64_t>(value) >> kMantissaBits) - kExponentBias;
    const int64_t begin = octave * index.per_octave - index.first_bound;
    const int64_t end = std::min<int64_t>(begin + index.per_octave, index.count);
    base += std::max<int64_t>(begin, 0);
    left = static_cast<uint64_t>(end - std::max<int64_t>(begin, 0));
  }
  while (left > 1) {
    const uint64_t half = left / 2;
    // A mask instead of `?:`, which g++ 12 compiles to a branch that is hard to predict.
    base += half & -static_cast<uint64_t>(base[half - 1] < value);
    left -= half;
  }
  return static_cast<uint32_t>(base - index.bounds) + static_cast<uint32_t>(*base < value);
}

}  // namespace internal
}  // namespace abi_1
}  // namespace persia::metrics
