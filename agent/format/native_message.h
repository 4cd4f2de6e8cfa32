// The buckets of a native histogram as fields of a protobuf message. The messages of an exposition (metric_messages.h) and of
// remote write (remote/write_request.h) have the same fields under different numbers:
//
//   schema: sint32, zero threshold: double, zero count: varint, span: BucketSpan *, delta: packed sint64
//   BucketSpan := offset 1: sint32, length 2: varint
//
// A span is a run of buckets; its offset is the gap to the one before. A delta is a bucket's count less that of the bucket
// before it.
//
// If more buckets are populated than `max_buckets`, pairs of neighbours are merged, which lowers the schema, until they are
// not. The counts of a process only grow, so the schema only falls while the series continues.
//
// Thread safety: pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "format/protobuf_wire.h"
#include "model/native_buckets.h"

namespace persia::agent {

// The fields' numbers.
struct NativeFields {
  int schema;
  int zero_threshold;
  int zero_count;
  int span;
  int delta;
};

// Rounds down to an unsigned integer, as a parser of the text does; negative counts and NaN become 0.
[[nodiscard]] uint64_t WholeCount(double count);

// The number of observations. `counts`: as of ClassicCounts.
[[nodiscard]] uint64_t NativeCount(const NativeBuckets& buckets, const double* counts);

// Up to this number of empty buckets are written as counts of 0, which is shorter than another span.
inline constexpr size_t kMaxNativeGap = 2;

// An upper bound for what PutNativeFields writes.
[[nodiscard]] constexpr size_t MaxNativeBytes(uint32_t buckets) {
  constexpr size_t kOther = 64;
  constexpr size_t kSpan = 2 + (1 + 5) + (1 + 2);
  return kOther + buckets * kMaxVarintSize + (buckets / (kMaxNativeGap + 2) + 1) * kSpan;
}

// Writes the fields at `to` and returns the end. REQUIRES: at most NativeBuckets::kMaxBuckets buckets.
char* PutNativeFields(char* to, const NativeFields& fields, const NativeBuckets& buckets, const double* counts);

}  // namespace persia::agent
