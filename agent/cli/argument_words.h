// The words of a command line after the verb, before a parser takes them: each with its place, which tells where the command of
// `exec` begins.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/command_line.h"

namespace persia::agent {

struct Word {
  std::string text;
  size_t index;  // in the arguments
};

// Stands for an empty value: CLI11 would take the next word as the value of `--flag=`.
inline constexpr char kEmptyValue[] = "\x01";

// An empty value is marked by kEmptyValue, and a flag of a setting that is true or false is joined to the `true` or `false`
// after it; if that would be the last word of `exec`, it is the command.
[[nodiscard]] std::vector<Word> WordsOf(const std::vector<std::string>& arguments, CommandLine::Verb verb);

[[nodiscard]] bool IsFlag(const std::string& text);

// Removes an unknown flag, and the word after it if that is its value: if the flag is probably one of `with_value`, the flags
// that take a value, or if the word cannot be the beginning of the command.
void RemoveUnknown(const std::string& flag, const std::vector<std::string>& with_value, CommandLine::Verb verb,
                   std::vector<Word>& words);

}  // namespace persia::agent
