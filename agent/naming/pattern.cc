#include "naming/pattern.h"

#include <re2/re2.h>

#include <cstdint>
#include <utility>

#include "base/text.h"

namespace persia::agent {
namespace {

// For one expression and its state between matches.
constexpr int64_t kMaxMemory = 1 << 20;

re2::RE2::Options Options() {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMaxMemory);
  return options;
}

// Go accepts (?<name>...) as well as (?P<name>...); RE2 does so only in newer versions.
std::string WithNamedGroups(std::string_view regex) {
  std::string text;
  bool in_class = false;
  for (size_t i = 0; i < regex.size(); ++i) {
    const std::string_view rest = regex.substr(i);
    if (rest.front() == '\\' && rest.size() > 1) {
      text += rest.substr(0, 2);
      ++i;
      continue;
    }
    if (!in_class && rest.starts_with("(?<")) {
      text += "(?P<";
      i += 2;
      continue;
    }
    in_class = in_class ? rest.front() != ']' : rest.front() == '[';
    text += rest.front();
  }
  return text;
}

}  // namespace

struct Pattern::Compiled {
  explicit Compiled(const std::string& expression) : regex(expression, Options()) {}
  const re2::RE2 regex;
};

Pattern::Pattern(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

Result<Pattern> Pattern::Compile(const std::string& expression) {
  auto compiled = std::make_unique<Compiled>(WithNamedGroups(expression));
  if (!compiled->regex.ok()) return Error{compiled->regex.error()};
  return Pattern(std::move(compiled));
}

int Pattern::groups() const { return compiled_->regex.NumberOfCapturingGroups(); }

const std::map<std::string, int>& Pattern::names() const { return compiled_->regex.NamedCapturingGroups(); }

std::optional<size_t> Pattern::GroupOf(std::string_view name) const {
  size_t number = 0;
  const bool is_number = ParseNumber(name, number) && (name.size() == 1 || name.front() != '0');
  if (is_number) return number <= static_cast<size_t>(groups()) ? std::optional(number) : std::nullopt;
  const auto found = names().find(std::string(name));
  return found == names().end() ? std::nullopt : std::optional(static_cast<size_t>(found->second));
}

bool Pattern::Match(std::string_view text, std::vector<std::string_view>& captures) const {
  std::vector<re2::StringPiece> found(static_cast<size_t>(groups()) + 1);
  if (!compiled_->regex.Match({text.data(), text.size()}, 0, text.size(), re2::RE2::UNANCHORED, found.data(),
                              static_cast<int>(found.size())))
    return false;
  captures.clear();
  for (const re2::StringPiece& piece : found) captures.emplace_back(piece.data(), piece.size());
  return true;
}

}  // namespace persia::agent
