#include "format/protobuf_wire.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <span>

#include "native_grid.h"

namespace persia::agent {
namespace {

namespace segment = metrics::segment;

// The counts of consecutive buckets.
struct Row {
  int schema;
  int first;
  size_t size;
  std::array<uint64_t, NativeBuckets::kMaxBuckets> counts;

  [[nodiscard]] std::span<const uint64_t> all() const { return {counts.data(), size}; }
};

Row ReadRow(const NativeBuckets& buckets, const double* counts) {
  Row row;  // NOLINT(cppcoreguidelines-pro-type-member-init): only `size` counts are read
  row.schema = buckets.schema;
  row.first = buckets.first;
  row.size = buckets.buckets;
  std::transform(counts, counts + row.size, row.counts.begin(), WholeCount);
  return row;
}

// Merges each two buckets that are one of the next lower schema.
void Halve(Row& row) {
  const auto merged = [](int index) { return (index + 1) >> 1; };
  const int first = merged(row.first);
  const auto last = static_cast<size_t>(merged(row.first + static_cast<int>(row.size) - 1) - first);
  for (size_t i = 0; i < row.size; ++i) {
    const auto to = static_cast<size_t>(merged(row.first + static_cast<int>(i)) - first);
    const uint64_t count = row.counts[i];
    row.counts[i] = 0;
    row.counts[to] += count;  // to <= i
  }
  --row.schema;
  row.first = first;
  row.size = last + 1;
}

// Returns the bucket after `at` and the empty ones behind it that are written too: the end of a span.
size_t SpanEnd(std::span<const uint64_t> counts, size_t at) {
  size_t end = at + 1;
  for (size_t i = end; i < counts.size() && i <= end + kMaxNativeGap; ++i)
    if (counts[i] > 0) end = i + 1;
  return end;
}

// Calls `each(begin, end)` for each span.
template <class Each>
void ForEachSpan(std::span<const uint64_t> counts, const Each& each) {
  for (size_t at = 0; at < counts.size();) {
    if (counts[at] == 0) {
      ++at;
      continue;
    }
    const size_t end = SpanEnd(counts, at);
    each(at, end);
    at = end;
  }
}

constexpr uint64_t ZigZag(int64_t number) { return (static_cast<uint64_t>(number) << 1) ^ static_cast<uint64_t>(number >> 63); }

}  // namespace

uint64_t WholeCount(double count) {
  if (!(count > 0)) return 0;
  return count < 0x1p64 ? static_cast<uint64_t>(count) : std::numeric_limits<uint64_t>::max();
}

uint64_t NativeCount(const NativeBuckets& buckets, const double* counts) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i <= buckets.buckets; ++i) sum += WholeCount(counts[i]);
  return sum;
}

char* PutNativeFields(char* to, const NativeFields& fields, const NativeBuckets& buckets, const double* counts) {
  Row row = ReadRow(buckets, counts + 1);
  const auto populated = [&] { return std::ranges::count_if(row.all(), [](uint64_t count) { return count > 0; }); };
  while (buckets.max_buckets > 0 && populated() > buckets.max_buckets && row.schema > segment::kNativeLeastSchema) Halve(row);

  *to++ = VarintKey(fields.schema);
  to = PutVarint(to, ZigZag(row.schema));
  *to++ = FixedKey(fields.zero_threshold);
  to = PutFixed(to, std::bit_cast<uint64_t>(buckets.ZeroThreshold()));
  *to++ = VarintKey(fields.zero_count);
  to = PutVarint(to, WholeCount(counts[0]));

  int64_t next = 0;  // the index after the last span
  size_t delta_bytes = 0;
  uint64_t before = 0;
  std::array<uint64_t, NativeBuckets::kMaxBuckets> deltas;
  size_t delta_count = 0;
  ForEachSpan(row.all(), [&](size_t begin, size_t end) {
    const int64_t index = row.first + static_cast<int64_t>(begin);
    const uint64_t offset = ZigZag(index - next);
    const size_t length = end - begin;
    next = index + static_cast<int64_t>(length);
    *to++ = BytesKey(fields.span);
    *to++ = static_cast<char>(2 + VarintSize(offset) + VarintSize(length));
    *to++ = VarintKey(1);
    to = PutVarint(to, offset);
    *to++ = VarintKey(2);
    to = PutVarint(to, length);
    for (size_t i = begin; i < end; ++i) {
      const uint64_t delta = ZigZag(static_cast<int64_t>(row.counts[i] - before));
      before = row.counts[i];
      deltas[delta_count++] = delta;
      delta_bytes += VarintSize(delta);
    }
  });
  if (delta_count == 0) return to;
  *to++ = BytesKey(fields.delta);
  to = PutVarint(to, delta_bytes);
  for (size_t i = 0; i < delta_count; ++i) to = PutVarint(to, deltas[i]);
  return to;
}

}  // namespace persia::agent
