// A regular expression in the syntax of Go and Prometheus: the adapter of RE2. Matching takes time linear in the text, so that
// no name that a worker chooses can stall the agent.
//
// Thread safety: const methods from any thread.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace persia::agent {

class Pattern {
 public:
  // The error quotes the wrong part of the expression.
  static Result<Pattern> Compile(const std::string& expression);

  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  // The number of groups in parentheses.
  [[nodiscard]] int groups() const;
  // The numbers of those that have names.
  [[nodiscard]] const std::map<std::string, int>& names() const;
  // The number of a group that a text refers to by number or by name, as in Go: no number begins with a 0. None: no such group.
  [[nodiscard]] std::optional<size_t> GroupOf(std::string_view name) const;
  // Whether the expression matches anywhere in `text`. Then `captures` has the whole match, then each group, empty if unused.
  bool Match(std::string_view text, std::vector<std::string_view>& captures) const;

 private:
  struct Compiled;
  explicit Pattern(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace persia::agent
