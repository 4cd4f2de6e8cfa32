// What a protobuf message consists of: fields, each a key, its number times eight plus the kind of what follows, and that.
// Numbers are varints: 7 bits a byte, the lowest first, the highest bit set on all but the last.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace persia::agent {

inline constexpr size_t kLongestVarint = 10;

// The keys of the field of this number, at most 15: of a varint, of eight bytes, and of bytes behind their count.
[[nodiscard]] constexpr char VarintKey(int field) { return static_cast<char>(field << 3); }
[[nodiscard]] constexpr char FixedKey(int field) { return static_cast<char>(field << 3 | 1); }
[[nodiscard]] constexpr char BytesKey(int field) { return static_cast<char>(field << 3 | 2); }

[[nodiscard]] constexpr size_t VarintSize(uint64_t number) { return (static_cast<size_t>(std::bit_width(number | 1)) + 6) / 7; }

// These write at `to` and give the end. REQUIRES: room for what is written.
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
  char bytes[kLongestVarint];
  to.append(bytes, static_cast<size_t>(PutVarint(bytes, number) - bytes));
}
inline void AppendBytes(std::string& to, char key, std::string_view bytes) {
  to += key;
  AppendVarint(to, bytes.size());
  to += bytes;
}

// A message of a name, field 1, and a value, field 2: as a label is written in each of Prometheus' messages.
inline void AppendLabelPair(std::string& to, char key, std::string_view name, std::string_view value) {
  to += key;
  AppendVarint(to, 2 + VarintSize(name.size()) + name.size() + VarintSize(value.size()) + value.size());
  AppendBytes(to, BytesKey(1), name);
  AppendBytes(to, BytesKey(2), value);
}

}  // namespace persia::agent
