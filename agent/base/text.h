// Checks, parses and quotes text that people write.
//
// Thread safety: pure functions.
#pragma once

#include <charconv>
#include <string>
#include <string_view>

#include "base/result.h"

namespace persia::agent {

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

}  // namespace persia::agent
