#include "model/pattern.h"

#include <re2/re2.h>

#include <utility>

namespace persia::agent {
namespace {

// Of one expression, with what it keeps between matches. Names of metrics need a small part of it.
constexpr int64_t kMostMemory = 1 << 20;

re2::RE2::Options OptionsOfOurs() {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMostMemory);
  return options;
}

}  // namespace

struct Pattern::Compiled {
  explicit Compiled(const std::string& expression) : regex(expression, OptionsOfOurs()) {}
  const re2::RE2 regex;
};

Pattern::Pattern(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

Result<Pattern> Pattern::Compile(const std::string& expression) {
  auto compiled = std::make_unique<Compiled>(expression);
  if (!compiled->regex.ok()) {
    return Error{compiled->regex.error()};
  }
  return Pattern(std::move(compiled));
}

int Pattern::groups() const { return compiled_->regex.NumberOfCapturingGroups(); }

bool Pattern::Match(std::string_view text, std::vector<std::string_view>& captures) const {
  std::vector<re2::StringPiece> found(static_cast<size_t>(groups()) + 1);
  if (!compiled_->regex.Match({text.data(), text.size()}, 0, text.size(), re2::RE2::UNANCHORED, found.data(),
                              static_cast<int>(found.size()))) {
    return false;
  }
  captures.clear();
  for (const re2::StringPiece& piece : found) {
    captures.emplace_back(piece.data(), piece.size());
  }
  return true;
}

}  // namespace persia::agent
