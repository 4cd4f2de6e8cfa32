// A regular expression, in the syntax that Go's and Prometheus's have. The adapter of RE2.
//
// Matching takes time in proportion to the text, whatever the expression: no text that a worker makes up can stall the agent.
// Thread safety: Match from any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/result.h"

namespace persia::agent {

class Pattern {
 public:
  // The error says what is wrong with the expression, and quotes the part.
  static Result<Pattern> Compile(const std::string& expression);

  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  // How many groups in parentheses there are.
  [[nodiscard]] int groups() const;
  // Whether it matches anywhere in `text`; then `captures` has the whole match and each group, empty if it took no part.
  bool Match(std::string_view text, std::vector<std::string_view>& captures) const;

 private:
  struct Compiled;
  explicit Pattern(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace persia::agent
