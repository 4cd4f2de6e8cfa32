// The wire format of protobuf, and the buckets of native histograms in it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "model/bounds.h"

namespace persia::agent {

// The wire format of protobuf. A message is a sequence of fields: a key (the field's number times eight plus its wire type),
// then the value. A varint has 7 bits of its number in each byte, the lowest first; the highest bit is set in all bytes but the
// last.
inline constexpr size_t kMaxVarintSize = 10;

// Keys of a field with a varint, with eight bytes, and with bytes that follow their count. REQUIRES: field <= 15.
[[nodiscard]] constexpr char VarintKey(int field) { return static_cast<char>(field << 3); }
[[nodiscard]] constexpr char FixedKey(int field) { return static_cast<char>(field << 3 | 1); }
[[nodiscard]] constexpr char BytesKey(int field) { return static_cast<char>(field << 3 | 2); }

[[nodiscard]] constexpr size_t VarintSize(uint64_t number) { return (static_cast<size_t>(std::bit_width(number | 1)) + 6) / 7; }

// Each writes at `to` and returns the end.
inline char* PutVarint(char* to, uint64_t number) {
  while (number >= 0x80) {
    *to++ = static_cast<char>(number | 0x80);
    number >>= 7;
  }
  *to++ = static_cast<char>(number);
  return to;
}
inline char* PutFixed(char* to, uint64_t bits) {
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(to, &bits, sizeof bits);
  return to + sizeof bits;
}

inline void AppendVarint(std::string& to, uint64_t number) {
  char bytes[kMaxVarintSize];
  to.append(bytes, static_cast<size_t>(PutVarint(bytes, number) - bytes));
}
inline void AppendBytes(std::string& to, char key, std::string_view bytes) {
  to += key;
  AppendVarint(to, bytes.size());
  to += bytes;
}

// A label as in all of Prometheus' messages: a message with the name in field 1 and the value in field 2.
inline void AppendLabelPair(std::string& to, char key, std::string_view name, std::string_view value) {
  to += key;
  AppendVarint(to, 2 + VarintSize(name.size()) + name.size() + VarintSize(value.size()) + value.size());
  AppendBytes(to, BytesKey(1), name);
  AppendBytes(to, BytesKey(2), value);
}

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
