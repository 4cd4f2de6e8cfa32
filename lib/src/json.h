// As much of JSON (RFC 8259, with Python's NaN and Infinity) as the library writes and reads.
// Thread safety: pure functions, any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "persia/metrics/events.h"

namespace persia::metrics::json {

// Appends the text in quotes. Bytes that are not UTF-8 stay as they are.
void AppendString(std::string& out, std::string_view text);
// Appends the shortest text that reads back as this number, with a fraction or an exponent, so that it stays a float.
void AppendNumber(std::string& out, double value);
void AppendNumber(std::string& out, int64_t value);

// Reads one text from the left.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  // Nothing went wrong so far.
  [[nodiscard]] bool ok() const { return ok_; }
  // Nothing is left.
  [[nodiscard]] bool AtEnd();
  // Calls `member(key)`, which must take the value, for each member of an object.
  void Object(const std::function<void(const std::string& key)>& member);
  void ObjectOrNull(const std::function<void(const std::string& key)>& member);
  std::string String();
  // A whole number of int64_t, or else a double; null, true, false, a string. Objects and arrays are refused.
  events::Event::Value Scalar();
  // Whatever it is.
  void Skip();
  void Fail() { ok_ = false; }

 private:
  static constexpr int kMaxDepth = 64;

  bool Take(char c);
  bool TakeWord(std::string_view word);
  void SkipSpace();
  bool AppendEscaped(std::string& out);
  int Hex4();
  events::Event::Value Number();

  std::string_view rest_;
  bool ok_ = true;
  int depth_ = 0;
};

}  // namespace persia::metrics::json
