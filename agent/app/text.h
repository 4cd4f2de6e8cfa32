// What people write, taken apart and quoted back to them.
#pragma once

#include <charconv>
#include <string>
#include <string_view>

#include "model/result.h"

namespace persia::agent {

constexpr bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// `text` in double quotes, as it can stand in one line of a log: control characters escaped, shortened if it is long.
std::string Quoted(std::string_view text);

// `text` as a string of JSON, with its quotes; what is not valid UTF-8 becomes U+FFFD.
std::string JsonString(std::string_view text);

// `text` without control characters: line ends become spaces, others U+FFFD, as does what is not valid UTF-8.
std::string OneLine(std::string_view text);

// An error of the form: "<text>" <why>.
Error Bad(std::string_view text, std::string_view why);

// Whether `text` can stand in a log, a file of lines, a label: valid UTF-8 without control characters, neither empty nor
// longer than 4096 bytes. The error calls it `what`.
Status CheckText(std::string_view text, std::string_view what);

// Whether all of `text` is a number of type T, in plain decimal form.
template <class T>
bool ParseNumber(std::string_view text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace persia::agent
