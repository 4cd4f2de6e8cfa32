// WriteRequest := ( 0x0a length TimeSeries )*
// TimeSeries   := Label+ 0x12 length Sample
// Label        := 0x0a length ( 0x0a length name 0x12 length value )
// Sample       := 0x09 value:8 bytes 0x10 timestamp:varint
//
// A length and a timestamp are varints: 7 bits a byte, the lowest first, the highest bit set on all but the last.
#include "remote/write_request.h"

#include <algorithm>
#include <cstring>

namespace persia::agent {
namespace {

constexpr char kFirstField = 0x0a;   // field 1, with a length
constexpr char kSecondField = 0x12;  // field 2, with a length
constexpr char kValueField = 0x09;   // field 1, eight bytes
constexpr char kTimestampField = 0x10;
constexpr size_t kLongestVarint = 10;
constexpr size_t kValueSize = 1 + sizeof(uint64_t);

char* PutVarint(char* to, uint64_t number) {
  while (number >= 0x80) {
    *to++ = static_cast<char>(number | 0x80);
    number >>= 7;
  }
  *to++ = static_cast<char>(number);
  return to;
}

void AppendVarint(std::string& to, uint64_t number) {
  char bytes[kLongestVarint];
  to.append(bytes, static_cast<size_t>(PutVarint(bytes, number) - bytes));
}

size_t VarintSize(uint64_t number) {
  size_t size = 1;
  for (; number >= 0x80; number >>= 7) ++size;
  return size;
}

char* Put(char* to, std::string_view bytes) {
  std::memcpy(to, bytes.data(), bytes.size());
  return to + bytes.size();
}

// Takes `field length bytes` off the front.
bool Take(std::string_view& from, char field, std::string_view& bytes) {
  if (from.empty() || from.front() != field) return false;
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
  const size_t size = 2 + VarintSize(name.size()) + name.size() + VarintSize(value.size()) + value.size();
  encoded += kFirstField;
  AppendVarint(encoded, size);
  encoded += kFirstField;
  AppendVarint(encoded, name.size());
  encoded += name;
  encoded += kSecondField;
  AppendVarint(encoded, value.size());
  encoded += value;
}

bool ParseLabels(std::string_view encoded, Labels& labels) {
  labels.clear();
  while (!encoded.empty()) {
    std::string_view label;
    std::string_view name;
    std::string_view value;
    if (!Take(encoded, kFirstField, label) || !Take(label, kFirstField, name) || !Take(label, kSecondField, value) ||
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
    timestamp_.assign(1, kTimestampField);
    AppendVarint(timestamp_, static_cast<uint64_t>(timestamp_ms));
  }
  const size_t sample_size = kValueSize + timestamp_.size();
  const size_t series_size = labels.size() + 2 + sample_size;
  const size_t most = size_ + 1 + kLongestVarint + series_size;
  if (buffer_.size() < most) buffer_.resize(std::max(most, 2 * buffer_.size()));
  char* to = buffer_.data() + size_;
  *to++ = kFirstField;
  to = PutVarint(to, series_size);
  to = Put(to, labels);
  *to++ = kSecondField;
  *to++ = static_cast<char>(sample_size);  // below 0x80
  *to++ = kValueField;
  std::memcpy(to, &value_bits, sizeof value_bits);
  to = Put(to + sizeof value_bits, timestamp_);
  size_ = static_cast<size_t>(to - buffer_.data());
  ++samples_;
}

void WriteRequest::Clear() {
  size_ = 0;
  samples_ = 0;
}

}  // namespace persia::agent
