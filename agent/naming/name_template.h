// A text with references to the captures of a match: `${1}_total`, `$0`, `${group}`; `$$` is a dollar. A capture that has a
// name in the regular expression is also `${name}` or `$name`. If the group is empty, a `_` that follows `${group}` is left
// out, as in a plain name.
//
// Thread safety: const methods from any thread.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace persia::agent {

class NameTemplate {
 public:
  // The captures that have names.
  using Names = std::map<std::string, int, std::less<>>;

  NameTemplate() = default;
  // `captures`: how many there are, beside $0.
  static Result<NameTemplate> Parse(std::string_view text, int captures, const Names& names = {});

  [[nodiscard]] bool empty() const { return parts_.empty(); }
  // REQUIRES: `captures` has the whole match, then as many captures as Parse was told.
  [[nodiscard]] std::string Fill(std::string_view group, std::span<const std::string_view> captures) const;

 private:
  static constexpr int kNone = -1;
  static constexpr int kGroup = -2;

  struct Part {
    std::string text;
    int capture = kNone;  // follows the text
  };
  std::vector<Part> parts_;
};

}  // namespace persia::agent
