// The wire format of protobuf. A message is a sequence of fields: a key (the field's number times eight plus its wire type),
// then the value. A varint has 7 bits of its number in each byte, the lowest first; the highest bit is set in all bytes but the
// last.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace persia::agent {

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

}  // namespace persia::agent
