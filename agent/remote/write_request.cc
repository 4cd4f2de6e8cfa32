// WriteRequest := ( 0x0a length TimeSeries )*
// TimeSeries   := Label+ 0x12 length Sample
// Label        := 0x0a length ( 0x0a length name 0x12 length value )
// Sample       := 0x09 value:8 bytes 0x10 timestamp:varint
#include "remote/write_request.h"

#include <algorithm>
#include <cstring>

#include "format/protobuf_wire.h"

namespace persia::agent {
namespace {

char* Put(char* to, std::string_view bytes) {
  std::memcpy(to, bytes.data(), bytes.size());
  return to + bytes.size();
}

// Takes the field of this key off the front.
bool Take(std::string_view& from, char key, std::string_view& bytes) {
  if (from.empty() || from.front() != key) return false;
  from.remove_prefix(1);
  uint64_t size = 0;
  for (int shift = 0;; shift += 7) {
    if (from.empty() || shift > 28) return false;
    const auto byte = static_cast<unsigned char>(from.front());
    from.remove_prefix(1);
    size |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  if (size > from.size()) return false;
  bytes = from.substr(0, size);
  from.remove_prefix(size);
  return true;
}

}  // namespace

void AppendLabel(std::string& encoded, std::string_view name, std::string_view value) {
  AppendLabelPair(encoded, BytesKey(1), name, value);
}

bool ParseLabels(std::string_view encoded, Labels& labels) {
  labels.clear();
  while (!encoded.empty()) {
    std::string_view label;
    std::string_view name;
    std::string_view value;
    if (!Take(encoded, BytesKey(1), label) || !Take(label, BytesKey(1), name) || !Take(label, BytesKey(2), value) ||
        !label.empty()) {
      return false;
    }
    labels.emplace_back(name, value);
  }
  return true;
}

void WriteRequest::Add(std::string_view labels, uint64_t value_bits, int64_t timestamp_ms) {
  if (timestamp_ms != timestamp_of_) {
    timestamp_of_ = timestamp_ms;
    timestamp_.assign(1, VarintKey(2));
    AppendVarint(timestamp_, static_cast<uint64_t>(timestamp_ms));
  }
  const size_t sample_size = 1 + sizeof value_bits + timestamp_.size();
  const size_t series_size = labels.size() + 2 + sample_size;
  const size_t most = size_ + 1 + kLongestVarint + series_size;
  if (buffer_.size() < most) buffer_.resize(std::max(most, 2 * buffer_.size()));
  char* to = buffer_.data() + size_;
  *to++ = BytesKey(1);
  to = PutVarint(to, series_size);
  to = Put(to, labels);
  *to++ = BytesKey(2);
  *to++ = static_cast<char>(sample_size);  // below 0x80
  *to++ = FixedKey(1);
  to = Put(PutFixed(to, value_bits), timestamp_);
  size_ = static_cast<size_t>(to - buffer_.data());
  ++samples_;
}

void WriteRequest::Clear() {
  size_ = 0;
  samples_ = 0;
}

}  // namespace persia::agent
