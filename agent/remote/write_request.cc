// WriteRequest := ( 0x0a length TimeSeries )*
// TimeSeries   := Label+, and one of 0x12 length Sample, 0x22 length Histogram
// Label        := 0x0a length ( 0x0a length name 0x12 length value )
// Sample       := 0x09 value:8 bytes 0x10 timestamp:varint
// Histogram    := 0x08 count:varint 0x19 sum:8 bytes Native 0x78 timestamp:varint
// Native       := schema 4, zero threshold 5, zero count 6, span 11 *, delta 12: see format/protobuf_wire.h
//
// A count of 0 is written, too: in the protocol, the field that is there says whether counts are integers.
#include "remote/write_request.h"

#include <snappy.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

#include "format/protobuf_wire.h"

namespace persia::agent {
namespace {

constexpr NativeFields kNativeFields{.schema = 4, .zero_threshold = 5, .zero_count = 6, .span = 11, .delta = 12};

// The count and the sum.
char* PutTotals(char* to, uint64_t count, uint64_t sum_bits) {
  *to++ = VarintKey(1);
  to = PutVarint(to, count);
  *to++ = FixedKey(3);
  return PutFixed(to, sum_bits);
}

uint64_t TypeNumber(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return 1;
    case MetricType::kGauge:
      return 2;
    case MetricType::kHistogram:
      return 3;
    case MetricType::kSummary:
      return 5;
    case MetricType::kUntyped:
      break;
  }
  return 0;
}

void AppendText(std::string& to, int field, std::string_view text) {
  if (!text.empty()) AppendBytes(to, BytesKey(field), text);
}

// A copy of 64 bytes takes 3 bytes of a block. The length that a block claims is allocated before it is checked.
constexpr size_t kMaxRatio = 64;

}  // namespace

void AppendLabel(std::string& encoded, std::string_view name, std::string_view value) {
  AppendLabelPair(encoded, BytesKey(1), name, value);
}

void WriteRequest::Add(std::string_view labels, uint64_t value_bits, int64_t timestamp_ms) {
  if (timestamp_ms != timestamp_of_) {
    timestamp_of_ = timestamp_ms;
    timestamp_.assign(1, VarintKey(2));
    AppendVarint(timestamp_, static_cast<uint64_t>(timestamp_ms));
  }
  const size_t sample_size = 1 + sizeof value_bits + timestamp_.size();
  char value[sizeof value_bits];
  PutFixed(value, value_bits);
  bytes_ += BytesKey(1);
  AppendVarint(bytes_, labels.size() + 2 + sample_size);
  bytes_ += labels;
  bytes_ += BytesKey(2);
  bytes_ += static_cast<char>(sample_size);  // below 0x80
  bytes_ += FixedKey(1);
  bytes_.append(value, sizeof value);
  bytes_ += timestamp_;
  ++samples_;
}

void WriteRequest::AddSeries(std::string_view labels, char key, std::string_view fields, char timestamp_key,
                             int64_t timestamp_ms) {
  const size_t size = fields.size() + 1 + VarintSize(static_cast<uint64_t>(timestamp_ms));
  bytes_ += BytesKey(1);
  AppendVarint(bytes_, labels.size() + 1 + VarintSize(size) + size);
  bytes_ += labels;
  bytes_ += key;
  AppendVarint(bytes_, size);
  bytes_ += fields;
  bytes_ += timestamp_key;
  AppendVarint(bytes_, static_cast<uint64_t>(timestamp_ms));
  ++samples_;
}

void WriteRequest::AddHistogram(std::string_view labels, const NativeBuckets& buckets, double sum, const double* counts,
                                int64_t timestamp_ms) {
  char fields[2 * (1 + kMaxVarintSize) + MaxNativeBytes(NativeBuckets::kMaxBuckets)];
  char* end = PutTotals(fields, NativeCount(buckets, counts), BitsOf(sum));
  end = PutNativeFields(end, kNativeFields, buckets, counts);
  AddSeries(labels, BytesKey(4), {fields, static_cast<size_t>(end - fields)}, VarintKey(15), timestamp_ms);
}

void WriteRequest::AddEmptyHistogram(std::string_view labels, const NativeBuckets& buckets, int64_t timestamp_ms) {
  constexpr std::array<double, NativeBuckets::kMaxBuckets + 1> kNoCounts{};
  AddHistogram(labels, buckets, 0, kNoCounts.data(), timestamp_ms);
}

void WriteRequest::AddStaleHistogram(std::string_view labels, int64_t timestamp_ms) {
  char fields[4 * (1 + kMaxVarintSize)];
  char* end = PutTotals(fields, 0, kStaleMarker);
  *end++ = VarintKey(kNativeFields.zero_count);
  end = PutVarint(end, 0);
  AddSeries(labels, BytesKey(4), {fields, static_cast<size_t>(end - fields)}, VarintKey(15), timestamp_ms);
}

namespace {

// Moves `at` over a key and a length, and returns the length.
uint64_t ReadLength(std::string_view body, size_t& at) {
  uint64_t length = 0;
  ++at;  // the key
  for (int shift = 0; at < body.size() && shift < 64; shift += 7) {
    const auto byte = static_cast<uint8_t>(body[at++]);
    length |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return std::min<uint64_t>(length, body.size());
}

// The bytes of the first `series` time series of a body.
size_t SizeOf(std::string_view body, uint32_t series) {
  size_t at = 0;
  for (; series > 0 && at < body.size(); --series) {
    const uint64_t length = ReadLength(body, at);
    at += length;
  }
  return std::min(at, body.size());
}

}  // namespace

uint32_t SeriesIn(std::string_view body) {
  uint32_t series = 0;
  for (; !body.empty(); ++series) body.remove_prefix(SizeOf(body, 1));
  return series;
}

std::optional<Halves> HalvesOf(std::string_view body) {
  const uint32_t series = SeriesIn(body);
  if (series < 2) return std::nullopt;
  const size_t first = SizeOf(body, series / 2);
  return Halves{body.substr(0, first), body.substr(first)};
}

void WriteRequest::Clear() {
  bytes_.clear();
  samples_ = 0;
}

// WriteRequest   := ( 0x1a length MetricMetadata )*
// MetricMetadata := 0x08 type:varint 0x12 length name 0x22 length help 0x2a length unit
//
// As in protobuf 3, a field that is 0 or empty is left out.

std::vector<MetadataRequest> EncodeMetadata(const Layout& layout, size_t max_families) {
  std::vector<MetadataRequest> requests;
  std::string message;
  const std::string* last_name = nullptr;
  for (const FamilyLayout& family : layout.families) {
    if (last_name != nullptr && *last_name == family.name) continue;
    last_name = &family.name;
    message.clear();
    if (const uint64_t type = TypeNumber(family.type); type != 0) {
      message += VarintKey(1);
      AppendVarint(message, type);
    }
    AppendText(message, 2, family.name);
    AppendText(message, 4, family.help);
    AppendText(message, 5, family.unit);
    if (requests.empty() || requests.back().families >= max_families) requests.emplace_back();
    AppendBytes(requests.back().body, BytesKey(3), message);
    ++requests.back().families;
  }
  return requests;
}

void SnappyCompress(std::string_view data, std::string& out) { snappy::Compress(data.data(), data.size(), &out); }

std::optional<std::string> SnappyUncompress(std::string_view block, size_t max_bytes) {
  size_t size = 0;
  std::string out;
  if (!snappy::GetUncompressedLength(block.data(), block.size(), &size) || size > max_bytes ||
      size / kMaxRatio > block.size() || !snappy::Uncompress(block.data(), block.size(), &out))
    return std::nullopt;
  return out;
}

}  // namespace persia::agent
