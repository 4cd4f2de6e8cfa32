// Fields of a relabelling rule, each up to a NUL: action (its first byte), a source label, separator, regex, target
// label, replacement; then values of labels. The rule is refused in one line, or leaves labels that remote write accepts.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>

#include "base/text.h"
#include "remote/relabel.h"

namespace {

using persia::agent::IsDigit;
using persia::agent::IsLetter;

void Require(bool kept) {
  if (!kept) {
    std::abort();
  }
}

std::string Take(std::string_view& rest) {
  const std::string_view field = rest.substr(0, rest.find('\0'));
  rest.remove_prefix(std::min(field.size() + 1, rest.size()));
  return std::string(field);
}

bool IsLabelName(std::string_view name) {
  return !name.empty() && !IsDigit(name.front()) &&
         std::all_of(name.begin(), name.end(), [](char c) { return IsLetter(c) || IsDigit(c); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  persia::agent::RelabelConfig config;
  const std::string action = Take(rest);
  const size_t number = action.empty() ? 0 : static_cast<unsigned char>(action.front());
  config.action = persia::agent::kRelabelActions[number % std::size(persia::agent::kRelabelActions)].value;
  if (const std::string source = Take(rest); !source.empty()) config.source_labels = {source, "b"};
  if (const std::string separator = Take(rest); !separator.empty()) config.separator = separator;
  if (const std::string regex = Take(rest); !regex.empty()) config.regex = regex;
  config.target_label = Take(rest);
  if (const std::string replacement = Take(rest); !replacement.empty()) config.replacement = replacement;
  persia::agent::Labels labels{{"__name__", "n"}};
  for (char name = 'a'; name < 'e' && !rest.empty(); ++name) {
    if (const std::string value = Take(rest); !value.empty()) labels.emplace_back(std::string(1, name), value);
  }
  const auto rule = persia::agent::RelabelRule::Make(config);
  if (!rule.ok()) {
    Require(!rule.error().empty());
    return 0;
  }
  if (!rule.value().Apply(labels)) return 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    Require(IsLabelName(labels[i].first) && !labels[i].second.empty());
    Require(i == 0 || labels[i - 1].first < labels[i].first);
  }
  return 0;
}
