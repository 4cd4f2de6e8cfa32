// A value that is written as one word of a fixed list, such as "debug, info, warning".
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/spelling.h"
#include "base/text.h"

namespace persia::agent {

template <class T>
struct Choice {
  std::string_view word;
  T value;
};

inline std::string CommaSeparated(std::span<const std::string_view> words) {
  std::string list;
  for (const std::string_view word : words) {
    list += (list.empty() ? "" : ", ") + std::string(word);
  }
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
  return std::find_if(std::begin(choices), std::end(choices), [value](const Choice<T>& c) { return c.value == value; })->word;
}

}  // namespace persia::agent
