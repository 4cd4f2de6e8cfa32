// A text with places for what a match has captured: `${1}_total`, `$0`, `${group}`; `$$` is a dollar. An empty group takes a
// `_` behind its place away, as it does in a plain name.
//
// Thread safety: a value; Fill from any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/result.h"

namespace persia::agent {

class NameTemplate {
 public:
  NameTemplate() = default;
  // A reference takes the digits behind its dollar and no more, and must be one of the `captures` beyond $0, all that matched.
  static Result<NameTemplate> Parse(std::string_view text, int captures);

  [[nodiscard]] bool empty() const { return parts_.empty(); }
  // REQUIRES: `captures` has what Parse was told of, after all that matched.
  [[nodiscard]] std::string Fill(std::string_view group, std::span<const std::string_view> captures) const;

 private:
  static constexpr int kNone = -1;
  static constexpr int kGroup = -2;

  struct Part {
    std::string text;
    int capture = kNone;  // that follows the text
  };
  std::vector<Part> parts_;
};

}  // namespace persia::agent
