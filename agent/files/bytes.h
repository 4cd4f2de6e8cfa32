// Writes and reads the payload of a state file: little-endian numbers, and texts after their length.
//
//   ByteWriter writer;                     ByteReader reader(payload);
//   writer.U32(7);                         uint32_t number = reader.U32();
//   writer.String("trainer");              std::string_view text = reader.String();
//   std::move(writer).Take()               if (!reader.ok()) ... it is too short
//
// A reader never reads beyond its bytes: a missing value is 0 or empty, and from then on ok() is false.
// Thread safety: none.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace persia::agent {

static_assert(std::endian::native == std::endian::little);

class ByteWriter {
 public:
  void U8(uint8_t value) { Append(value); }
  void U32(uint32_t value) { Append(value); }
  void U64(uint64_t value) { Append(value); }
  void F64(double value) { Append(value); }
  // REQUIRES: shorter than 4 GiB.
  void String(std::string_view text) {
    U32(static_cast<uint32_t>(text.size()));
    bytes_ += text;
  }

  [[nodiscard]] std::string Take() && { return std::move(bytes_); }

 private:
  template <class T>
  void Append(T value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes_.append(raw, sizeof raw);
  }

  std::string bytes_;
};

class ByteReader {
 public:
  // REQUIRES: `bytes` outlive the reader and the results of String().
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  uint8_t U8() { return Read<uint8_t>(); }
  uint32_t U32() { return Read<uint32_t>(); }
  uint64_t U64() { return Read<uint64_t>(); }
  double F64() { return Read<double>(); }
  std::string_view String() {
    const uint32_t size = U32();
    if (size > rest_.size()) Fail();
    const std::string_view text = rest_.substr(0, ok_ ? size : 0);
    rest_.remove_prefix(text.size());
    return text;
  }
  // A count of elements of at least `each` bytes. If fewer bytes are left, it fails and returns 0, so that a caller may reserve
  // memory for the count.
  uint32_t Count(size_t each) {
    const uint32_t count = U32();
    if (count > rest_.size() / each) Fail();
    return ok_ ? count : 0;
  }

  [[nodiscard]] bool ok() const { return ok_; }
  // Whether all reads succeeded and no bytes are left.
  [[nodiscard]] bool done() const { return ok_ && rest_.empty(); }

 private:
  template <class T>
  T Read() {
    T value{};
    if (rest_.size() < sizeof value) {
      Fail();
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  void Fail() {
    ok_ = false;
    rest_ = {};
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace persia::agent
