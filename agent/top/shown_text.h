// Text and numbers as a terminal shows them.
//
//   Shown("rep_2\x1b[2J", 10, Charset::kUtf8)   // "rep_2?[2J": nothing that an agent sends controls the terminal
//   ShownBytes(1.5e9)                           // "1.40 GiB"
//   ShownSpan(192'000)                          // "3m12s"
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace persia::agent {

enum class Charset : uint8_t { kAscii, kUtf8 };

// `text` in at most `width` columns. A character that is not printable, not in the charset or has no width becomes '?'. Text
// that does not fit ends in '~'. REQUIRES: for kUtf8, a UTF-8 locale is set, else each character that is not ASCII becomes '?'.
std::string Shown(std::string_view text, size_t width, Charset charset);
// The columns of text that Shown returned.
size_t ColumnsOf(std::string_view shown);

std::string ShownBytes(double bytes);         // "512 KiB"
std::string ShownNumber(double number);       // "12.3k"
std::string ShownSpan(int64_t milliseconds);  // "2h05m"; a negative one is 0

// Whether `a` sorts before `b`, with numbers compared by value: "rep_2" before "rep_10".
bool NaturalLess(std::string_view a, std::string_view b);

}  // namespace persia::agent
