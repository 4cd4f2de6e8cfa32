#include "naming/name_template.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text.h"

namespace persia::agent {

Result<NameTemplate> NameTemplate::Parse(std::string_view text, int captures, const Names& names) {
  NameTemplate out;
  std::string plain;
  while (!text.empty()) {
    const size_t dollar = std::min(text.find('$'), text.size());
    plain += text.substr(0, dollar);
    text.remove_prefix(dollar);
    if (text.empty()) break;
    text.remove_prefix(1);
    if (text.starts_with('$')) {
      plain += '$';
      text.remove_prefix(1);
      continue;
    }
    std::string_view reference;
    if (text.starts_with('{')) {
      const size_t end = text.find('}');
      reference = text.substr(1, end == std::string_view::npos ? 0 : end - 1);
      text.remove_prefix(end == std::string_view::npos ? 0 : end + 1);
    } else {
      const bool is_number = !text.empty() && IsDigit(text.front());
      const auto belongs = [&](char c) { return IsDigit(c) || (!is_number && IsLetter(c)); };
      reference = text.substr(0, std::find_if_not(text.begin(), text.end(), belongs) - text.begin());
      text.remove_prefix(reference.size());
    }
    if (const auto named = names.find(reference); named != names.end()) {
      out.parts_.push_back({std::exchange(plain, {}), named->second});
      continue;
    }
    if (reference == "group") {
      out.parts_.push_back({std::exchange(plain, {}), kGroup});
      continue;
    }
    if (reference.empty() || !std::all_of(reference.begin(), reference.end(), IsDigit))
      return Error{"a $ must be followed by a reference ($1, ${1}, ${group}); $$ is a dollar"};
    int number = 0;
    const auto [end, error] = std::from_chars(reference.data(), reference.data() + reference.size(), number);
    if (error != std::errc() || number > captures) {
      return Error{"$" + std::string(reference) + " refers to nothing: the match captures " +
                   (captures == 0 ? "nothing ($0 is the whole match)"
                                  : "$1" + (captures > 1 ? " to $" + std::to_string(captures) : ""))};
    }
    out.parts_.push_back({std::exchange(plain, {}), number});
  }
  if (!plain.empty()) out.parts_.push_back({std::move(plain), kNone});
  return out;
}

std::string NameTemplate::Fill(std::string_view group, std::span<const std::string_view> captures) const {
  std::string out;
  bool after_empty_group = false;
  for (const Part& part : parts_) {
    out += std::string_view(part.text).substr(after_empty_group && part.text.starts_with('_') ? 1 : 0);
    after_empty_group = part.capture == kGroup && group.empty();
    if (part.capture == kGroup)
      out += group;
    else if (part.capture >= 0)
      out += captures[static_cast<size_t>(part.capture)];
  }
  return out;
}

}  // namespace persia::agent
