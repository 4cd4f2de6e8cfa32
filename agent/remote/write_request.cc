// WriteRequest := ( 0x0a length TimeSeries )*
// TimeSeries   := Label+ 0x12 length Sample
// Label        := 0x0a length ( 0x0a length name 0x12 length value )
// Sample       := 0x09 value:8 bytes 0x10 timestamp:varint
#include "remote/write_request.h"

#include "format/protobuf_wire.h"

namespace persia::agent {

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

namespace {

// The bytes of the first `series` time series of a body.
size_t SizeOf(std::string_view body, uint32_t series) {
  size_t at = 0;
  for (; series > 0 && at < body.size(); --series) {
    uint64_t length = 0;
    ++at;  // the key
    for (int shift = 0; at < body.size(); shift += 7) {
      const auto byte = static_cast<uint8_t>(body[at++]);
      length |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    at += length;
  }
  return at;
}

}  // namespace

uint32_t SeriesIn(std::string_view body) {
  uint32_t series = 0;
  for (; !body.empty(); ++series) body.remove_prefix(SizeOf(body, 1));
  return series;
}

std::optional<Halves> Halve(std::string_view body) {
  const uint32_t series = SeriesIn(body);
  if (series < 2) return std::nullopt;
  const size_t first = SizeOf(body, series / 2);
  return Halves{body.substr(0, first), body.substr(first)};
}

void WriteRequest::Clear() {
  bytes_.clear();
  samples_ = 0;
}

}  // namespace persia::agent
