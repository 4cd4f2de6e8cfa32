// Writes and reads the payload of a state file. The fields of a struct are listed once, for both directions:
//
//   template <class Archive>
//   void Fields(Archive& archive, Life& life) {
//     archive(life.id, life.ending, life.phases);
//     archive.Check(life.ending <= Ending::kLeftOut);     // a reader fails if it does not hold
//   }
//   const std::string bytes = Encode(life, until);
//   if (!Decode(bytes, life, until)) ... it is malformed, or has bytes after its end; the values are undefined
//
// Numbers, booleans and enumerations are little-endian, in their own size. A text is its length (U32) and its bytes. An
// optional value is a U8, 1 if it is there, and then the value. A list, a map or a set is its number of entries (U32) and the
// entries; an array is its entries. A duration is its count (I64), and a time is in milliseconds since 1970 (U64). A pair, and
// a struct with Fields, is its parts.
//
// A reader never reads beyond its bytes: a missing value is 0 or empty, and from then on ok() is false. What it reads takes
// memory in proportion to the bytes; the counts in them do not matter.
// Thread safety: none.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace persia::agent {

static_assert(std::endian::native == std::endian::little);

namespace bytes {

template <class T>
concept Number = std::is_arithmetic_v<T> || std::is_enum_v<T>;
template <class T>
concept Text = std::same_as<T, std::string> || std::same_as<T, std::string_view>;
template <class T>
concept Optional = std::same_as<T, std::optional<typename T::value_type>>;
template <class T>
concept Pair = std::same_as<T, std::pair<typename T::first_type, typename T::second_type>>;
template <class T>
concept Array = std::is_bounded_array_v<T> || requires {
  std::tuple_size<T>::value;
};

using Time = std::chrono::system_clock::time_point;
inline constexpr uint64_t kEndOfTimeMs = 1ULL << 43;  // the year 2248

}  // namespace bytes

class ByteWriter {
 public:
  // Whether it changes the values that it is given.
  static constexpr bool kReads = false;

  void U8(uint8_t value) { Append(value); }
  void U32(uint32_t value) { Append(value); }
  void U64(uint64_t value) { Append(value); }
  void F64(double value) { Append(value); }
  // REQUIRES: shorter than 4 GiB.
  void String(std::string_view text) {
    U32(static_cast<uint32_t>(text.size()));
    bytes_ += text;
  }

  template <class... Ts>
  void operator()(const Ts&... values) {
    (Write(values), ...);
  }
  void Check(bool /*holds*/) {}

  [[nodiscard]] std::string Take() && { return std::move(bytes_); }

 private:
  template <class T>
  void Write(const T& value) {
    if constexpr (bytes::Number<T>) {
      Append(value);
    } else if constexpr (bytes::Text<T>) {
      String(value);
    } else if constexpr (std::same_as<T, bytes::Time>) {
      using std::chrono::milliseconds;
      Append(std::max<int64_t>(0, std::chrono::duration_cast<milliseconds>(value.time_since_epoch()).count()));
    } else if constexpr (requires { typename T::rep; }) {
      Append(static_cast<int64_t>(value.count()));
    } else if constexpr (bytes::Optional<T>) {
      Append(value.has_value());
      if (value) Write(*value);
    } else if constexpr (bytes::Pair<T>) {
      (*this)(value.first, value.second);
    } else if constexpr (std::ranges::range<T>) {
      if constexpr (!bytes::Array<T>) U32(static_cast<uint32_t>(std::ranges::size(value)));
      for (const auto& entry : value) Write(entry);
    } else {
      Fields(*this, const_cast<T&>(value));  // does not change it
    }
  }

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
  static constexpr bool kReads = true;

  // REQUIRES: `bytes` outlive the reader and the results of String().
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  uint8_t U8() { return Number<uint8_t>(); }
  uint32_t U32() { return Number<uint32_t>(); }
  uint64_t U64() { return Number<uint64_t>(); }
  double F64() { return Number<double>(); }
  std::string_view String() {
    const uint32_t size = U32();
    Check(size <= rest_.size());
    const std::string_view text = rest_.substr(0, ok_ ? size : 0);
    rest_.remove_prefix(text.size());
    return text;
  }
  // A count of elements of at least `each` bytes. If fewer bytes are left, it fails and returns 0, so that a caller may reserve
  // memory for the count.
  uint32_t Count(size_t each) {
    const uint32_t count = U32();
    Check(count <= rest_.size() / each);
    return ok_ ? count : 0;
  }

  template <class... Ts>
  void operator()(Ts&... values) {
    (Read(values), ...);
  }
  // The bytes are malformed unless it holds.
  void Check(bool holds) {
    if (holds) return;
    ok_ = false;
    rest_ = {};
  }

  [[nodiscard]] bool ok() const { return ok_; }
  // Whether all reads succeeded and no bytes are left.
  [[nodiscard]] bool done() const { return ok_ && rest_.empty(); }

 private:
  template <class T>
  void Read(T& value) {
    if constexpr (std::same_as<T, bool>) {
      value = U8() != 0;
    } else if constexpr (bytes::Number<T>) {
      value = Number<T>();
    } else if constexpr (bytes::Text<T>) {
      value = String();
    } else if constexpr (std::same_as<T, bytes::Time>) {
      value = bytes::Time(std::chrono::milliseconds(static_cast<int64_t>(std::min(U64(), bytes::kEndOfTimeMs))));
    } else if constexpr (requires { typename T::rep; }) {
      value = T(static_cast<typename T::rep>(Number<int64_t>()));
    } else if constexpr (bytes::Optional<T>) {
      value.reset();
      if (U8() != 0) Read(value.emplace());
    } else if constexpr (bytes::Pair<T>) {
      (*this)(value.first, value.second);
    } else if constexpr (bytes::Array<T>) {
      for (auto& entry : value) Read(entry);
    } else if constexpr (std::ranges::range<T>) {
      value.clear();
      for (uint32_t left = Count(1); left > 0 && ok_; --left) ReadEntry(value);
    } else {
      Fields(*this, value);
    }
  }
  template <class T>
  void ReadEntry(T& list) {
    if constexpr (requires { typename T::mapped_type; }) {
      typename T::key_type key{};
      Read(key);
      Read(list[std::move(key)]);
    } else {
      typename T::value_type entry{};
      Read(entry);
      list.insert(list.end(), std::move(entry));
    }
  }
  template <class T>
  T Number() {
    T value{};
    Check(rest_.size() >= sizeof value);
    if (!ok_) return value;
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }

  std::string_view rest_;
  bool ok_ = true;
};

template <class... Ts>
[[nodiscard]] std::string Encode(const Ts&... values) {
  ByteWriter writer;
  writer(values...);
  return std::move(writer).Take();
}

// False: the bytes are malformed.
template <class... Ts>
[[nodiscard]] bool Decode(std::string_view bytes, Ts&... values) {
  ByteReader reader(bytes);
  reader(values...);
  return reader.done();
}
template <class T>
[[nodiscard]] std::optional<T> DecodeAs(std::string_view bytes) {
  T value;
  return Decode(bytes, value) ? std::optional(std::move(value)) : std::nullopt;
}

}  // namespace persia::agent
