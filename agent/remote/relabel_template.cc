#include "remote/relabel_template.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace persia::agent {
namespace {

// Takes a reference off the front of `rest`, which begins with `$`. Nothing: the `$` is literal.
std::optional<std::string_view> TakeReference(std::string_view& rest) {
  std::string_view after = rest.substr(1);
  const bool braces = after.starts_with('{');
  if (braces) after.remove_prefix(1);
  const auto end = std::find_if_not(after.begin(), after.end(), [](char c) { return IsLetter(c) || IsDigit(c); });
  const auto size = static_cast<size_t>(end - after.begin());
  if (size == 0 || (braces && (size == after.size() || after[size] != '}'))) return std::nullopt;
  const std::string_view name = after.substr(0, size);
  rest = after.substr(size + (braces ? 1 : 0));
  return name;
}

}  // namespace

std::string ExpandTemplate(std::string_view text, const std::function<std::string_view(std::string_view name)>& group) {
  std::string out;
  for (;;) {
    const size_t dollar = std::min(text.find('$'), text.size());
    out += text.substr(0, dollar);
    text.remove_prefix(dollar);
    if (text.empty()) return out;
    if (const auto name = TakeReference(text)) {
      out += group(*name);
    } else {
      out += '$';
      text.remove_prefix(text.starts_with("$$") ? 2 : 1);
    }
  }
}

}  // namespace persia::agent
