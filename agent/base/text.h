// Text: what people write, and bytes as text.
#pragma once

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace persia::agent {

// Checks, parses and quotes text that people write.
//
// Thread safety: pure functions.
constexpr bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// `text` in double quotes, for one line of a log: control characters escaped, long text shortened.
std::string Quoted(std::string_view text);

// `text` on one line: line ends and tabs become spaces; other control characters and invalid UTF-8 become U+FFFD.
std::string OneLine(std::string_view text);

// The error `"<text>" <why>`.
Error Bad(std::string_view text, std::string_view why);

// An error if `text` is empty, longer than 4096 bytes, not valid UTF-8, or contains control characters: it is used in logs,
// labels and files of lines. An error about empty text names it `what`.
Status CheckText(std::string_view text, std::string_view what);
// The same; an error quotes `shown`, for text that may have secrets.
Status CheckText(std::string_view text, std::string_view what, std::string_view shown);

// Whether all of `text` is a decimal number of type T.
template <class T>
bool ParseNumber(std::string_view text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// A number of bytes ("1048576"), or a number with a unit, in any letter case: "10k", "1GB" are powers of 1000, "64MiB", "1.5Gi"
// powers of 1024. Rounded to whole bytes.
Result<uint64_t> ParseSize(std::string_view text);

// A duration as Go writes it ("1m20s", "500ms", "1.5h"), or a number of seconds ("10", "0.5"). Rounded up to whole
// milliseconds, so that only 0 becomes 0; at most ten years.
Result<std::chrono::milliseconds> ParseDuration(std::string_view text);

// A duration as Prometheus writes it: "1d12h", "1m30s", "500ms"; units of y, w, d, h, m, s, ms, each once, in this order. Only
// 0 needs none. At most ten years.
Result<std::chrono::milliseconds> ParsePrometheusDuration(std::string_view text);

// The candidate at the smallest edit distance from `word`; empty if none is close enough. Letter case, and '-' for '_', do not
// count as differences.
std::string_view ClosestMatch(std::string_view word, std::span<const std::string_view> candidates);

// `; did you mean "x"?`, or nothing.
std::string DidYouMean(std::string_view word, std::span<const std::string_view> candidates);

// A value that is written as one word of a fixed list, such as "debug, info, warning".
template <class T>
struct Choice {
  std::string_view word;
  T value;
};

inline std::string CommaSeparated(std::span<const std::string_view> words) {
  std::string list;
  for (const std::string_view word : words) list += (list.empty() ? "" : ", ") + std::string(word);
  return list;
}

// The error lists all words and suggests the nearest one.
template <class T, size_t N>
Result<T> ParseChoice(std::string_view text, const Choice<T> (&choices)[N]) {
  std::vector<std::string_view> words;
  for (const Choice<T>& choice : choices) {
    if (choice.word == text) return choice.value;
    words.push_back(choice.word);
  }
  return Bad(text, "is not one of: " + CommaSeparated(words) + DidYouMean(text, words));
}

// REQUIRES: `value` is one of the choices.
template <class T, size_t N>
std::string_view WordOf(T value, const Choice<T> (&choices)[N]) {
  return std::find_if(
             std::begin(choices), std::end(choices), [value](const Choice<T>& c) { return c.value == value; })
      ->word;
}

// Bytes as text: hexadecimal, Base64 (RFC 4648), percent-encoding (RFC 3986).
//
// Thread safety: pure functions.

// Two lower-case digits for each byte.
std::string HexEncode(std::string_view bytes);

// With padding.
std::string Base64Encode(std::string_view bytes);
// The alphabet for URLs ("-" and "_"), without padding.
std::string Base64UrlEncode(std::string_view bytes);
// Takes the standard alphabet, with or without padding. Null if `text` is invalid.
std::optional<std::string> Base64Decode(std::string_view text);

// Encodes all bytes but letters, digits and "-._~": for a segment of a path, or a value in a query.
std::string PercentEncode(std::string_view bytes);

}  // namespace persia::agent
