// The part of Prometheus' client model that is written here. The number after a field's name is the field's number:
//
//   stream       := ( size MetricFamily )*
//   MetricFamily := name 1, help 2, type 3, Metric 4 *
//   Metric       := Label 1 *, and one of Gauge 2, Counter 3, Summary 4, Untyped 5, Histogram 7
//   Label        := name 1, value 2
//   Gauge, Untyped := value 1: double
//   Counter      := [ created 3: Timestamp ], value 1: double
//   Timestamp    := seconds since 1970 1: varint, nanoseconds 2: varint
//   Histogram    := [ created 15: Timestamp ], count 1: varint, sum 2: double, Bucket 3 *, [ Native ]
//   Native       := schema 5, zero threshold 6, zero count 7, span 12 *, delta 13: see protobuf_wire.h
//   Bucket       := cumulative count 1: varint, upper bound 2: double
//   Summary      := [ created 4: Timestamp ], count 1: varint, sum 2: double, Quantile 3 *
//   Quantile     := quantile 1: double, value 2: double
//
// The size of a family always takes five bytes: a varint may end in zeros. `created` is when the count began, in milliseconds:
// Prometheus adds no zero before its last sample of the previous process, so a second is too coarse. It is left out if the
// time is unknown; readers that do not know the field ignore it.
#include "format/metric_messages.h"

#include <cstring>
#include <limits>
#include <string_view>

namespace persia::agent {
namespace {

constexpr char kMetricKey = BytesKey(4);
constexpr size_t kFixedField = 1 + sizeof(uint64_t);
constexpr NativeFields kNativeFields{.schema = 5, .zero_threshold = 6, .zero_count = 7, .span = 12, .delta = 13};

struct TypeCode {
  char type;   // in a family
  char value;  // the key of the message with the value, in a metric
};

TypeCode CodeOf(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return {0, BytesKey(3)};
    case MetricType::kGauge:
      return {1, BytesKey(2)};
    case MetricType::kSummary:
      return {2, BytesKey(4)};
    case MetricType::kHistogram:
      return {4, BytesKey(7)};
    case MetricType::kUntyped:
      break;
  }
  return {3, BytesKey(5)};
}

size_t BucketSize(uint64_t count) { return 1 + VarintSize(count) + kFixedField; }

char* PutFixedField(char* to, int field, double value) {
  *to++ = FixedKey(field);
  return PutFixed(to, BitsOf(value));
}
char* PutVarintField(char* to, int field, uint64_t value) {
  *to++ = VarintKey(field);
  return PutVarint(to, value);
}

// Writes a metric up to and including the count and the sum of its histogram or summary. `size` more bytes must follow.
char* BeginMetric(PartWriter& writer, MetricType type, uint64_t count, double sum, size_t size) {
  size += writer.part_size(1) + 1 + VarintSize(count) + kFixedField;
  char* to = writer.position();
  *to++ = kMetricKey;
  to = PutVarint(to, writer.part_size(0) + 1 + VarintSize(size) + size);
  writer.set_position(to);
  writer.CopyPart();
  to = writer.position();
  *to++ = CodeOf(type).value;
  writer.set_position(PutVarint(to, size));
  writer.CopyPart();
  to = PutVarintField(writer.position(), 1, count);
  return PutFixedField(to, 2, sum);
}

// The field `created`; empty if the time is unknown.
std::string CreatedField(MetricType type, int64_t created_ms) {
  if (created_ms <= 0) return {};
  std::string time(1, VarintKey(1));
  AppendVarint(time, static_cast<uint64_t>(created_ms / 1000));
  time += VarintKey(2);
  AppendVarint(time, static_cast<uint64_t>(created_ms % 1000) * 1'000'000);
  std::string field;
  AppendBytes(field, BytesKey(type == MetricType::kHistogram ? 15 : type == MetricType::kSummary ? 4 : 3), time);
  return field;
}

}  // namespace

void MetricMessages::AppendHeader(const FamilyLayout& family, std::string& out) {
  AppendBytes(out, BytesKey(1), family.name);
  if (!family.help.empty()) AppendBytes(out, BytesKey(2), family.help);
  out += VarintKey(3);
  out += CodeOf(family.type).type;
}

void MetricMessages::AppendSeries(const FamilyLayout& family, const SeriesLayout& series, const Identity* identity,
                                  FixedParts& parts) {
  std::string labels;
  ForEachLabel(series.labels, identity,
               [&](std::string_view name, std::string_view value) { AppendLabelPair(labels, BytesKey(1), name, value); });
  const std::string created = CreatedField(family.type, series.created_ms);
  size_t begin = parts.bytes.size();
  if (PartsPerSeries(family) == 2) {
    parts.bytes += labels;
    parts.EndPart(begin);
    begin = parts.bytes.size();
    parts.bytes += created;
  } else {
    parts.bytes += kMetricKey;
    AppendVarint(parts.bytes, labels.size() + 2 + created.size() + kFixedField);
    parts.bytes += labels;
    parts.bytes += CodeOf(family.type).value;
    parts.bytes += static_cast<char>(created.size() + kFixedField);
    parts.bytes += created;
    parts.bytes += FixedKey(1);
  }
  parts.EndPart(begin);
}

void MetricMessages::EndFamily(const PartWriter& writer, char* begin) {
  auto size = static_cast<uint64_t>(writer.position() - begin) - kFamilyBytes;
  for (size_t i = 0; i + 1 < kFamilyBytes; ++i, size >>= 7) begin[i] = static_cast<char>(size | 0x80);
  begin[kFamilyBytes - 1] = static_cast<char>(size);
}

void MetricMessages::WriteHistogram(PartWriter& writer, const FamilyLayout& family, const double* values) {
  const size_t bounds = family.bounds.size();
  ClassicBuffer buffer;
  const double* const counts = family.BucketCounts(values, buffer);
  char native[MaxNativeBytes(NativeBuckets::kMaxBuckets)];
  const char* const native_end = family.native ? PutNativeFields(native, kNativeFields, *family.native, values + 1) : native;
  const auto native_size = static_cast<size_t>(native_end - native);
  double count = 0;
  size_t size = native_size;
  for (size_t i = 0; i <= bounds; ++i) size += 2 + BucketSize(WholeCount(count += counts[i]));
  char* to = BeginMetric(writer, family.type, WholeCount(count), values[0], size);
  count = 0;
  for (size_t i = 0; i <= bounds; ++i) {
    const uint64_t whole = WholeCount(count += counts[i]);
    *to++ = BytesKey(3);
    *to++ = static_cast<char>(BucketSize(whole));  // below 0x80
    to = PutVarintField(to, 1, whole);
    to = PutFixedField(to, 2, i < bounds ? family.bounds[i] : std::numeric_limits<double>::infinity());
  }
  std::memcpy(to, native, native_size);
  writer.set_position(to + native_size);
}

// `values`: the sum, the count, then the value of each quantile.
void MetricMessages::WriteSummary(PartWriter& writer, const FamilyLayout& family, const double* values) {
  size_t shown = 0;
  for (size_t i = 0; i < family.bounds.size(); ++i) shown += IsAbsent(values[2 + i]) ? 0 : 1;
  char* to = BeginMetric(writer, family.type, WholeCount(values[1]), values[0], shown * (2 + 2 * kFixedField));
  for (size_t i = 0; i < family.bounds.size(); ++i) {
    if (IsAbsent(values[2 + i])) continue;
    *to++ = BytesKey(3);
    *to++ = static_cast<char>(2 * kFixedField);
    to = PutFixedField(to, 1, family.bounds[i]);
    to = PutFixedField(to, 2, values[2 + i]);
  }
  writer.set_position(to);
}

}  // namespace persia::agent
