#include "cli/argument_words.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "config/settings.h"
#include "config/values.h"

namespace persia::agent {
namespace {

// A flag that needs no value, and takes one behind `=` only.
bool IsSwitch(std::string_view flag) {
  return std::any_of(
      Settings().begin(), Settings().end(),
      [flag](const Setting& setting) { return setting.flag == flag && setting.kind == ValueKind::kBoolean; });
}

}  // namespace

std::vector<Word> WordsOf(const std::vector<std::string>& arguments, CommandLine::Verb verb) {
  std::vector<Word> words;
  const size_t needed = verb == CommandLine::Verb::kExec ? 2 : 1;
  for (size_t i = 1; i < arguments.size(); ++i) {
    Word word{arguments[i], i};
    bool value = false;
    if (word.text.starts_with("--") && word.text.find('=') == word.text.size() - 1)
      word.text += kEmptyValue;
    else if (IsSwitch(word.text) && i + needed < arguments.size() && ParseBoolean(arguments[i + 1], value).ok())
      word.text += "=" + arguments[++i];
    words.push_back(std::move(word));
  }
  return words;
}

bool IsFlag(const std::string& text) { return text.size() > 1 && text[0] == '-' && text != "--"; }

void RemoveUnknown(const std::string& flag, const std::vector<std::string>& with_value, CommandLine::Verb verb,
                   std::vector<Word>& words) {
  const auto at = std::find_if(words.begin(), words.end(), [&flag](const Word& word) { return word.text == flag; });
  auto end = at + 1;
  if (flag.find('=') == std::string::npos && end != words.end() && end->text != "--" && !IsFlag(end->text)) {
    const std::vector<std::string_view> candidates(with_value.begin(), with_value.end());
    const bool separated = std::any_of(end, words.end(), [](const Word& word) { return word.text == "--"; });
    if (verb != CommandLine::Verb::kExec || separated || !ClosestMatch(flag, candidates).empty()) ++end;
  }
  words.erase(at, end);
}

}  // namespace persia::agent
